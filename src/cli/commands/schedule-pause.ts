import { changeSchedule } from '../screen/schedule-report.js'

export const run = changeSchedule('pause')
