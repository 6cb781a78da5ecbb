import { changeSchedule } from './report.js'

export const run = changeSchedule('trigger')
