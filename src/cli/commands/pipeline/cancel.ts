import { control } from './report.js'

export const run = control('cancel')
