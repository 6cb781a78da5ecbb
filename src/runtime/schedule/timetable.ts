import { Cron } from 'croner'
import { describeGiven } from '../../core/wording/choices.js'
import { InvalidOptionError } from '../../core/errors.js'

/** When the occurrences of a schedule are. */
export interface Timetable {
  readonly cron?: string
  readonly timeZone?: string
  readonly everyMs?: number
  /** When it was created, from which intervals are counted. */
  readonly from: number
}

/** Shorter intervals are a loop in a program, not a schedule. */
const LEAST_MS = 1000
/** No more missed occurrences than this are started or counted. */
const MOST_MISSED = 1000

/** The next occurrence after a time; undefined if there is none. */
export function nextAfter({ cron, timeZone, everyMs, from }: Timetable, after: number): number | undefined {
  if (everyMs !== undefined) return from + (Math.max(0, Math.floor((after - from) / everyMs)) + 1) * everyMs
  return parse(cron as string, timeZone)
    .nextRun(new Date(after))
    ?.getTime()
}

/** The occurrences from one that is due up to a time. If there are very many, only the newest. */
export function dueUntil(timetable: Timetable, first: number, now: number): readonly number[] {
  const due: number[] = []
  for (let at: number | undefined = first; at !== undefined && at <= now; at = nextAfter(timetable, at)) {
    due.push(at)
    // Straight to the newest: after a year off, an interval of one second must not become a loop of millions.
    if (due.length > MOST_MISSED) return newestUntil(timetable, now)
  }
  return due
}

function newestUntil({ cron, timeZone, everyMs, from }: Timetable, now: number): readonly number[] {
  if (everyMs !== undefined) {
    const last = from + Math.floor((now - from) / everyMs) * everyMs
    return Array.from({ length: MOST_MISSED }, (_, i) => last - (MOST_MISSED - 1 - i) * everyMs)
  }
  // It counts in whole seconds, and excludes the one that it is given.
  const runs = parse(cron as string, timeZone).previousRuns(MOST_MISSED + 1, new Date(now + 1000))
  const times = runs.map((run) => run.getTime()).filter((at) => at <= now)
  return times.slice(0, MOST_MISSED).reverse()
}

/** Refuses an impossible timetable, naming its options. */
export function readTimetable(
  given: { readonly cron?: unknown; readonly timeZone?: unknown; readonly everyMs?: unknown },
  from: number,
): Timetable {
  const { cron, timeZone, everyMs } = given
  if ((cron === undefined) === (everyMs === undefined)) {
    throw new InvalidOptionError(
      'cron',
      cron === undefined ? 'is missing, and so is everyMs' : 'is given together with everyMs',
      "Pass one of them: cron: '0 2 * * *' or everyMs: 60_000.",
    )
  }
  if (everyMs !== undefined) {
    if (timeZone !== undefined) {
      throw new InvalidOptionError('timeZone', 'has no meaning with everyMs', 'Leave it out, or use cron.')
    }
    if (!Number.isSafeInteger(everyMs) || (everyMs as number) < LEAST_MS) {
      throw new InvalidOptionError(
        'everyMs',
        `must be a whole number of at least ${LEAST_MS}, not ${describeGiven(everyMs)}`,
        'Pass milliseconds, for example 60_000 for a minute.',
      )
    }
    return { everyMs: everyMs as number, from }
  }
  if (typeof cron !== 'string') {
    throw new InvalidOptionError('cron', `must be text, not ${describeGiven(cron)}`, "Pass for example '0 2 * * *'.")
  }
  if (timeZone !== undefined && !isTimeZone(timeZone)) {
    throw new InvalidOptionError(
      'timeZone',
      `is not a time zone: ${describeGiven(timeZone)}`,
      "Pass a name such as 'Europe/Berlin'. Default: UTC.",
    )
  }
  const timetable = { cron, ...(timeZone === undefined ? {} : { timeZone: timeZone as string }), from }
  // 2:30 on a day without one, or February 30th: some patterns never come to pass.
  if (nextAfter(timetable, from) === undefined) {
    throw new InvalidOptionError('cron', `never comes: ${describeGiven(cron)}`, 'Check the days and the year.')
  }
  return timetable
}

function parse(cron: string, timeZone: string | undefined): Cron {
  try {
    return new Cron(cron, { timezone: timeZone ?? 'UTC', paused: true })
  } catch (error) {
    throw new InvalidOptionError(
      'cron',
      `is not a cron expression: ${describeGiven(cron)}`,
      "Pass minute, hour, day, month and weekday, for example '0 2 * * *' for every night at two.",
      { cause: error instanceof Error ? error.message : String(error) },
    )
  }
}

function isTimeZone(name: unknown): boolean {
  try {
    return typeof name === 'string' && new Date().toLocaleString('en', { timeZone: name }).length > 0
  } catch {
    return false
  }
}
