import { isDeepStrictEqual } from 'node:util'
import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { copyValue, type Value } from '../../codec/value.js'
import { describeGiven, notAChoice } from '../../core/wording/choices.js'
import { ConflictError, InvalidOptionError, NotFoundError, TooLargeError } from '../../core/errors.js'
import { MAIN_BRANCH, parseThreadId, type TenantId, type ThreadIdInput } from '../../core/ids.js'
import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import type { LogKey } from '../../log/contract.js'
import type { Fold } from '../../log/entry/fold.js'
import type { Log } from '../../log/log.js'
import type { FlowProgram } from '../program/flow.js'
import type { GraphProgram } from '../program/graph/graph.js'
import { planOf } from '../program/check-program.js'
import type { TypedProgram } from '../program/program.js'
import type { Shape } from '../program/state/state-key.js'
import { SCHEDULE } from '../run/state/labels.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { changeSchedule, type Missed, readSchedule, type ScheduleRecord, scheduleThread } from './schedule-state.js'
import { nextAfter, readTimetable, type Timetable } from './timetable.js'

/** When a program runs by itself, and with what input. */
export interface ScheduleOptions<Input = unknown> {
  /** Minute, hour, day, month and weekday: `'0 2 * * *'` is every night at two. With six fields the first is the second. */
  readonly cron?: string
  /** The time zone of `cron`, such as `'Europe/Berlin'`. Default UTC. */
  readonly timeZone?: string
  /**
   * Instead of `cron`: the interval between occurrences in milliseconds, counted from when the schedule was created.
   */
  readonly everyMs?: number
  /** The input of each run. */
  readonly input?: Input
  /** The thread for all occurrences, one after the other. Default: a thread for each, named after schedule and time. */
  readonly thread?: ThreadIdInput
  /**
   * What happens to occurrences that no worker was there to start: the newest of them is started late (`'last'`, the
   * default), none that is more than a minute late (`'skip'`), or each of up to 1,000 (`'all'`).
   */
  readonly missed?: Missed
}

/** The current state of a schedule. */
export interface Schedule {
  readonly name: string
  readonly program: string
  readonly cron?: string
  readonly timeZone?: string
  readonly everyMs?: number
  readonly input?: Value
  readonly thread?: ThreadIdInput
  readonly missed: Missed
  readonly paused: boolean
  /** Null while it is paused, and if no more occurrences follow. */
  readonly next: Date | null
  readonly last?: {
    readonly at: Date
    readonly thread: ThreadIdInput
    readonly run?: string
    /** Why it could not be started, for example because the program refused its input. */
    readonly error?: string
  }
  /** How many occurrences were started so far. */
  readonly started: number
  /** How many were missed and not started. */
  readonly skipped: number
}

/** One page of schedules. */
export interface SchedulePage {
  readonly schedules: readonly Schedule[]
  /** Present when more may follow. */
  readonly cursor?: string
}

// Whatever its state and output are: only the input is given here.
type ScheduledProgram<Input> = GraphProgram<Shape, Input> | FlowProgram<Input, unknown> | TypedProgram<Input>

const OPTIONS: OptionNames<ScheduleOptions> = {
  cron: true,
  timeZone: true,
  everyMs: true,
  input: true,
  thread: true,
  missed: true,
}
const MISSED: readonly Missed[] = ['last', 'skip', 'all']
const MAX_NAME = 128
const MOST_EXTRA = 100

/** The schedules of one tenant. Workers that have a program start its occurrences, each of them once. */
export class Schedules {
  readonly #environment: RuntimeEnvironment
  readonly #tenant: TenantId
  readonly #erase: (thread: ThreadIdInput) => Promise<{ readonly erased: number }>

  constructor(
    environment: RuntimeEnvironment,
    tenant: TenantId,
    erase: (thread: ThreadIdInput) => Promise<{ readonly erased: number }>,
  ) {
    this.#environment = environment
    this.#tenant = tenant
    this.#erase = erase
  }

  /**
   * Creates a schedule, or changes the one with this name. Setting the same again changes nothing, so a program may do
   * it whenever it starts. A paused one stays paused.
   */
  async set<Input>(name: string, program: ScheduledProgram<Input>, options: ScheduleOptions<Input>): Promise<Schedule> {
    checkName(name)
    checkOptionNames('hf.schedules.set()', options, OPTIONS)
    const { clock } = this.#environment
    const plan = planOf('program', program)
    const { input, thread, missed = 'last' } = options
    if (!MISSED.includes(missed)) throw notAChoice('missed', missed, MISSED)
    if (thread !== undefined && parseThreadId(thread) === parseThreadId(scheduleThread(name))) {
      throw new InvalidOptionError('thread', 'is the log of this schedule', 'Name another thread, or leave it out.')
    }
    await clock.catchUp()
    const timetable = readTimetable(options, clock.now())
    await plan.checkInput(input)
    const kept = input === undefined ? undefined : this.#keep(input)
    const log = await this.#open(name)
    await log.update((fold) => {
      const before = this.#read(name, fold)
      const after = changed(
        before,
        { name, program: plan.name, version: plan.version, kept, thread, missed },
        timetable,
        clock.now(),
      )
      return isDeepStrictEqual(before, after) ? undefined : [changeSchedule(before, after)]
    })
    return describe(readSchedule(log.fold) as ScheduleRecord)
  }

  /** One page of this tenant's schedules. */
  async list(query: { readonly limit?: number; readonly cursor?: string } = {}): Promise<SchedulePage> {
    checkOptionNames('hf.schedules.list()', query, { limit: true, cursor: true })
    const { logs } = this.#environment
    const page = await logs.list({
      tenant: this.#tenant,
      metadata: { [SCHEDULE]: true },
      limit: query.limit ?? 100,
      ...(query.cursor === undefined ? {} : { cursor: query.cursor }),
    })
    const found = await Promise.all(page.heads.map(async ({ log }) => readSchedule((await logs.open(log)).fold)))
    const schedules = found.flatMap((schedule) => (schedule === undefined ? [] : [describe(schedule)]))
    return { schedules, ...(page.cursor === undefined ? {} : { cursor: page.cursor }) }
  }

  /** Undefined if there is none with that name. */
  async get(name: string): Promise<Schedule | undefined> {
    checkName(name)
    const schedule = readSchedule((await this.#environment.logs.open(this.#key(name))).fold)
    return schedule && describe(schedule)
  }

  /** Starts nothing until it is resumed. What is already running continues. */
  pause(name: string): Promise<Schedule> {
    return this.#change(name, (schedule) => ({ ...schedule, paused: true }))
  }

  /** Continues with the next occurrence from now on; those missed in the meantime are not made up for. */
  resume(name: string): Promise<Schedule> {
    return this.#change(name, (schedule) => {
      if (!schedule.paused) return schedule
      return { ...schedule, paused: false, next: nextAfter(schedule.timetable, this.#environment.clock.now()) ?? null }
    })
  }

  /** One more occurrence, now, whether it is paused or not. Its timetable stays as it is. */
  trigger(name: string): Promise<Schedule> {
    return this.#change(name, (schedule) => {
      const { extra } = schedule
      if (extra.length >= MOST_EXTRA) {
        throw new TooLargeError(
          `Schedule "${name}"`,
          'occurrences that wait to be started',
          MOST_EXTRA,
          extra.length + 1,
          'Start a worker that has its program.',
        )
      }
      // Each is one of its own, also within one millisecond.
      const at = Math.max(this.#environment.clock.now(), (extra.at(-1) ?? 0) + 1)
      return { ...schedule, extra: [...extra, at] }
    })
  }

  /** Threads that it started stay. False if there is none with that name. */
  async delete(name: string): Promise<boolean> {
    if ((await this.get(name)) === undefined) return false
    return (await this.#erase(scheduleThread(name))).erased > 0
  }

  async #change(name: string, change: (schedule: ScheduleRecord) => ScheduleRecord): Promise<Schedule> {
    checkName(name)
    await this.#environment.clock.catchUp()
    const log = await this.#open(name)
    if (this.#read(name, log.fold) === undefined) throw unknown(name)
    await log.update((fold) => {
      const before = this.#read(name, fold)
      if (before === undefined) throw unknown(name)
      const after = change(before)
      return after === before ? undefined : [changeSchedule(before, after)]
    })
    return describe(readSchedule(log.fold) as ScheduleRecord)
  }

  #open(name: string): Promise<Log> {
    return this.#environment.logs.open(this.#key(name))
  }

  /** Undefined where there is none; a thread of that name that somebody ran is left alone. */
  #read(name: string, fold: Fold): ScheduleRecord | undefined {
    const schedule = readSchedule(fold)
    if (schedule !== undefined || fold.seq < 0) return schedule
    throw new ConflictError(`The thread { schedule: "${name}" } exists and is not a schedule.`, { name })
  }

  #keep(input: unknown): Value {
    const copied = copyValue(input, DEFAULT_LIMITS)
    return this.#environment.redactor?.value(copied) ?? copied
  }

  #key(name: string): LogKey {
    return { tenant: this.#tenant, thread: parseThreadId(scheduleThread(name)), branch: MAIN_BRANCH }
  }
}

function checkName(name: unknown): asserts name is string {
  const isName = typeof name === 'string' && name.length >= 1 && name.length <= MAX_NAME && !/\p{Cc}/u.test(name)
  if (isName && name.isWellFormed()) return
  throw new InvalidOptionError(
    'name',
    `of a schedule must be 1 to ${MAX_NAME} printable characters, not ${describeGiven(name)}`,
    "Pass for example 'nightly-report'.",
  )
}

function unknown(name: string): NotFoundError {
  return new NotFoundError(`There is no schedule "${name}".`, 'List the schedules: holdfast schedule list.', { name })
}

/** The schedule as it is asked for, with what continues from the one before. */
function changed(
  before: ScheduleRecord | undefined,
  asked: Pick<ScheduleRecord, 'name' | 'program' | 'version' | 'missed'> & {
    readonly thread: ThreadIdInput | undefined
    readonly kept: Value | undefined
  },
  timetable: Timetable,
  now: number,
): ScheduleRecord {
  const { kept, thread, ...rest } = asked
  const isSameTime = before !== undefined && sameTime(before.timetable, timetable)
  const next = isSameTime ? before.next : (nextAfter(timetable, now) ?? null)
  // A worker may have left what is due on the thread before, and died before it said so.
  const isMoved = before !== undefined && !isDeepStrictEqual(before.thread, thread)
  const earlier = isMoved ? { until: now, thread: before.thread ?? null } : before?.earlier
  return {
    ...rest,
    ...(kept === undefined ? {} : { input: kept }),
    ...(thread === undefined ? {} : { thread }),
    ...(earlier === undefined ? {} : { earlier }),
    timetable: isSameTime ? before.timetable : timetable,
    next,
    paused: before?.paused ?? false,
    extra: before?.extra ?? [],
    ...(before?.last === undefined ? {} : { last: before.last }),
    started: before?.started ?? 0,
    skipped: before?.skipped ?? 0,
  }
}

function sameTime(one: Timetable, other: Timetable): boolean {
  return one.cron === other.cron && one.timeZone === other.timeZone && one.everyMs === other.everyMs
}

function describe(schedule: ScheduleRecord): Schedule {
  const { name, program, timetable, input, thread, missed, paused, next, last, started, skipped } = schedule
  const { from: _, ...times } = timetable
  return {
    name,
    program,
    ...times,
    ...(input === undefined ? {} : { input }),
    ...(thread === undefined ? {} : { thread }),
    missed,
    paused,
    next: paused || next === null ? null : new Date(next),
    ...(last === undefined ? {} : { last: { ...last, at: new Date(last.at) } }),
    started,
    skipped,
  }
}
