import type { Schedule } from '../../../types.js'
import type { Command } from '../../command.js'
import type { CommandContext } from '../../context.js'
import { formatThreadId } from '../../input/thread-id.js'
import { brief, type Cell, clean } from '../../screen/output.js'
import { ago, briefDuration } from '../../screen/times.js'

/** Shows one schedule, or says what happened to it. */
export function reportSchedule({ output }: CommandContext, schedule: Schedule): void {
  if (output.json) return output.document(schedule)
  output.line(`${clean(schedule.name)}: ${describeTimes(schedule)}, ${describeNext(schedule)}`)
}

/** All schedules, one line each. */
export async function listSchedules({ output }: CommandContext, schedules: readonly Schedule[]): Promise<void> {
  if (output.json) return output.document({ schedules })
  if (schedules.length === 0)
    return output.note('There are no schedules. Create one: holdfast schedule set <file> <name>.')
  await output.table(
    ['schedule', 'program', 'when', 'next', 'last', 'started', 'missed'],
    schedules.map((schedule): readonly Cell[] => [
      brief(schedule.name, 60),
      brief(schedule.program, 60),
      describeTimes(schedule),
      schedule.paused ? ['paused', 'yellow'] : describeNext(schedule),
      describeLast(schedule),
      schedule.started,
      schedule.skipped,
    ]),
  )
}

/** A command that changes one schedule by its name. */
export function changeSchedule(change: 'pause' | 'resume' | 'trigger'): Command {
  return async (context, [name = '']) => {
    const hf = await context.open()
    reportSchedule(context, await hf.schedules[change](name))
  }
}

function describeTimes({ cron, timeZone, everyMs }: Schedule): string {
  if (everyMs !== undefined) return `every ${briefDuration(everyMs)}`
  return clean(`${cron}${timeZone === undefined ? '' : ` ${timeZone}`}`)
}

function describeNext({ paused, next }: Schedule): string {
  if (paused) return 'paused'
  return next === null ? 'no more' : `next ${next.toISOString().slice(0, 19)}Z`
}

function describeLast({ last }: Schedule): Cell {
  if (last === undefined) return 'never'
  if (last.error !== undefined) return [`failed: ${brief(last.error, 80)}`, 'red']
  return `${ago(last.at)}: ${brief(formatThreadId(last.thread), 60)}`
}
