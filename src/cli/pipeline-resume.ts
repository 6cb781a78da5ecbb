import { control } from './pipeline-report.js'

export const run = control('resume')
