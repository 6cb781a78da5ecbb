import { isHoldfastError } from '../../core/errors.js'
import { MAIN_BRANCH, parseThreadId, type ThreadIdInput } from '../../core/ids.js'
import type { LogKey } from '../../log/contract.js'
import { isStoreFailure } from '../errors.js'
import type { ProgramPlan } from '../program/program.js'
import { enqueueInput } from '../run/input/enqueue.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { changeSchedule, type LastOccurrence, readSchedule, type ScheduleRecord } from './schedule-state.js'
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
 * Leaves the input of every due occurrence for whoever runs its thread, and then records that in the log of the
 * schedule. A process that dies in between does no harm: the occurrence is the key of the input, which is not run
 * twice.
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
  const { due, extra, skipped, next } = dueOf(schedule, now)
  const threads = new Map<number, ThreadIdInput>()
  let last: LastOccurrence | undefined
  for (const at of [...due, ...extra].sort((a, b) => a - b)) {
    last = await startOne(environment, plan, key, schedule, at)
    if (last.error === undefined) threads.set(at, last.thread)
  }
  if (last === undefined && skipped === 0 && next === schedule.next) return undefined
  await log.update((fold) => {
    const current = readSchedule(fold)
    // Another process was faster, or somebody changed it in the meantime.
    if (current === undefined || current.next !== schedule.next) return undefined
    const mine = [...due, ...extra.filter((at) => current.extra.includes(at))]
    if (mine.length === 0 && next === current.next) return undefined
    const { earlier: _, ...rest } = current
    const after: ScheduleRecord = {
      ...rest,
      next,
      extra: current.extra.filter((at) => !extra.includes(at)),
      ...(last === undefined ? {} : { last }),
      started: current.started + mine.filter((at) => threads.has(at)).length,
      skipped: current.skipped + skipped,
    }
    return [changeSchedule(current, after)]
  })
  const failed = last?.error === undefined ? {} : { error: last.error }
  return { schedule: schedule.name, threads: [...threads.values()], skipped, ...failed }
}

function dueOf(schedule: ScheduleRecord, now: number) {
  const { timetable, missed, paused, next } = schedule
  const extra = schedule.extra.filter((at) => at <= now)
  if (paused || next === null || next > now) return { due: [], extra, skipped: 0, next }
  const all = dueUntil(timetable, next, now)
  const due =
    missed === 'all' ? all : missed === 'last' ? all.slice(-1) : all.slice(-1).filter((at) => now - at <= LATE_MS)
  return { due, extra, skipped: all.length - due.length, next: nextAfter(timetable, all.at(-1) ?? now) ?? null }
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
  const { earlier } = schedule
  const place = earlier !== undefined && at <= earlier.until ? (earlier.thread ?? undefined) : schedule.thread
  const thread = place ?? occurrence
  const key: LogKey = { tenant, thread: parseThreadId(thread), branch: MAIN_BRANCH }
  try {
    const { run } = await enqueueInput(environment, plan, key, input, { key: occurrence })
    return { at, thread, ...(run === undefined ? {} : { run }) }
  } catch (error) {
    // A store that is down is asked again, and a thread that this version does not continue is left to one that does.
    // Input that the program refuses stays refused.
    if (isStoreFailure(error) || isHoldfastError(error, 'incompatible')) throw error
    return { at, thread, error: error instanceof Error ? error.message : String(error) }
  }
}
