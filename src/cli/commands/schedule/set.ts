import type { ScheduleOptions } from '../../../types.js'
import { usageError } from '../../cli-error.js'
import { type Command, text } from '../../command.js'
import { readJson } from '../../input/json-input.js'
import { chooseProgram, loadPrograms } from '../../input/load-programs.js'
import { parseThreadId } from '../../input/thread-id.js'
import { reportSchedule } from './report.js'
import { parseDuration } from '../../screen/times.js'

/** Makes or changes a schedule of a program that a module exports. */
export const run: Command = async (context, [file = '', name = ''], options) => {
  const program = chooseProgram(await loadPrograms(context, file), text(options, 'program'))
  const [cron, every, timeZone, thread, missed, input] = (
    ['cron', 'every', 'timeZone', 'thread', 'missed', 'input'] as const
  ).map((option) => text(options, option))
  if ((cron === undefined) === (every === undefined)) {
    throw usageError('A schedule needs --cron or --every, and one of them only.', "For example --cron '0 2 * * *'.")
  }
  const given: ScheduleOptions = {
    ...(cron === undefined ? {} : { cron }),
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(every === undefined ? {} : { everyMs: parseDuration(every, '--every') }),
    ...(thread === undefined ? {} : { thread: parseThreadId(thread) }),
    ...(missed === undefined ? {} : { missed: missed as NonNullable<ScheduleOptions['missed']> }),
    ...(input === undefined ? {} : { input: await readJson(context, input, '--input') }),
  }
  const hf = await context.open({ create: true })
  reportSchedule(context, await hf.schedules.set(name, program, given))
}
