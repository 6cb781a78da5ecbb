import { MAIN_BRANCH, parseThreadId, type ThreadIdInput } from '../../core/ids.js'
import type { LogKey } from '../../log/contract.js'
import { set } from '../../log/entry/ops.js'
import { isStoreFailure } from '../errors.js'
import type { ProgramPlan } from '../program/program.js'
import { enqueueInput, type RuntimeEnvironment } from '../run/run-thread.js'
import { type LastOccurrence, readSchedule, scheduleIndex, type ScheduleRecord } from './schedule-state.js'
import { dueUntil, nextAfter } from './timetable.js'

/** What a worker did for a schedule that was due. */
export interface StartedOccurrences {
  readonly schedule: string
  readonly threads: readonly ThreadIdInput[]
  readonly skipped: number
  readonly error?: string
}

/** An occurrence that is older than this was missed. */
const LATE_MS = 60_000

/**
 * Leaves the input of every occurrence that is due for whoever runs its thread, and then says so in the log of the schedule.
 * A process that dies in between does no harm: the input has the occurrence for its key, and is not taken twice.
 */
export async function startOccurrences(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  key: LogKey,
): Promise<StartedOccurrences | undefined> {
  const { clock } = environment
  const log = await environment.logs.open(key)
  const schedule = readSchedule(log.fold)
  if (schedule === undefined) return undefined
  await clock.catchUp()
  const now = clock.now()
  const { due, skipped, next } = dueOf(schedule, now)
  const threads: ThreadIdInput[] = []
  let last: LastOccurrence | undefined
  for (const at of due) {
    last = await startOne(environment, plan, key, schedule, at)
    if (last.error === undefined) threads.push(last.thread)
  }
  if (last === undefined && skipped === 0 && next === schedule.next) return undefined
  await log.update((fold) => {
    const current = readSchedule(fold)
    // Another process was quicker, or somebody changed it meanwhile.
    if (current === undefined || current.next !== schedule.next || current.extra !== schedule.extra) return undefined
    const { extra: _, ...rest } = current
    const after: ScheduleRecord = {
      ...rest,
      next,
      ...(last === undefined ? {} : { last }),
      started: current.started + threads.length,
      skipped: current.skipped + skipped,
    }
    return [{ kind: 'schedule', ops: [set('schedule', after)], index: scheduleIndex(after) }]
  })
  const failed = last?.error === undefined ? {} : { error: last.error }
  return { schedule: schedule.name, threads, skipped, ...failed }
}

function dueOf(
  schedule: ScheduleRecord,
  now: number,
): { due: readonly number[]; skipped: number; next: number | null } {
  const { timetable, missed, paused, next, extra } = schedule
  const more = extra !== undefined && extra <= now ? [extra] : []
  if (paused || next === null || next > now) return { due: more, skipped: 0, next }
  const due = dueUntil(timetable, next, now)
  const wanted =
    missed === 'all' ? due : missed === 'last' ? due.slice(-1) : due.slice(-1).filter((at) => now - at <= LATE_MS)
  const skipped = due.length - wanted.length
  return { due: [...wanted, ...more], skipped, next: nextAfter(timetable, due.at(-1) ?? now) ?? null }
}

async function startOne(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  { tenant }: LogKey,
  schedule: ScheduleRecord,
  at: number,
): Promise<LastOccurrence> {
  const { name, input } = schedule
  const occurrence = `${name} ${new Date(at).toISOString()}`
  const thread = schedule.thread ?? occurrence
  const key: LogKey = { tenant, thread: parseThreadId(thread), branch: MAIN_BRANCH }
  try {
    const { run } = await enqueueInput(environment, plan, key, input, { key: occurrence })
    return { at, thread, ...(run === undefined ? {} : { run }) }
  } catch (error) {
    // A store that is away is asked again; input that this version of the program refuses stays refused.
    if (isStoreFailure(error)) throw error
    return { at, thread, error: error instanceof Error ? error.message : String(error) }
  }
}
