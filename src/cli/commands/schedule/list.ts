import type { Schedule } from '../../../types.js'
import type { Command } from '../../command.js'
import { listSchedules } from './report.js'

/** The schedules of the tenant. */
export const run: Command = async (context) => {
  const hf = await context.open()
  const all: Schedule[] = []
  let cursor: string | undefined
  do {
    const page = await hf.schedules.list({ limit: 1000, ...(cursor === undefined ? {} : { cursor }) })
    all.push(...page.schedules)
    cursor = page.cursor
  } while (cursor !== undefined)
  await listSchedules(context, all)
}
