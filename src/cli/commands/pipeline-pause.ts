import { control } from '../screen/pipeline-report.js'

export const run = control('pause')
