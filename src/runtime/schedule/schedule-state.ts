import { isDeepStrictEqual } from 'node:util'
import type { Value } from '../../codec/value.js'
import type { ThreadIdInput } from '../../core/ids.js'
import { formatPolicy, parseRetention } from '../../core/retention.js'
import type { Draft } from '../../log/entry/draft.js'
import type { IndexPatch } from '../../log/entry/index-state.js'
import { type Op, remove, set } from '../../log/entry/ops.js'
import type { Fold } from '../../log/entry/fold.js'
import { CAPPED, PROGRAM, RETENTION, SCHEDULE, VERSION } from '../run/state/labels.js'
import type { Timetable } from './timetable.js'

/** What happens to occurrences that no worker was there to start. */
export type Missed = 'last' | 'skip' | 'all'

/** The last occurrence that was started, or that could not be. */
export interface LastOccurrence {
  readonly at: number
  readonly thread: ThreadIdInput
  readonly run?: string
  readonly error?: string
}

/** What the log of a schedule holds. */
export interface ScheduleRecord {
  readonly name: string
  readonly program: string
  /** The version of the program that last set it: a version that does not continue that one leaves it alone. */
  readonly version: string
  readonly timetable: Timetable
  readonly input?: Value
  /** The thread for all occurrences. Absent: each has its own. */
  readonly thread?: ThreadIdInput
  readonly missed: Missed
  readonly paused: boolean
  /** When the next occurrence is; null: never again. */
  readonly next: number | null
  /** Somebody requested more, besides those of the timetable, at these times. */
  readonly extra: readonly number[]
  /** What was due when the schedule was given another thread, and may have been started, belongs to the one before. */
  readonly earlier?: { readonly until: number; readonly thread: ThreadIdInput | null }
  readonly last?: LastOccurrence
  readonly started: number
  readonly skipped: number
}

// It runs forever, and only its newest entries are useful.
const KEPT = formatPolicy(parseRetention({ ttlMs: 'never', keepLast: 100 }), true)

// No program can have such a name, so workers of versions that know no schedules leave these logs alone.
const PREFIX = ' schedule: '

/** Under this program's name workers find the schedules of a program. */
export function scheduleLabel(program: string): string {
  return `${PREFIX}${program}`
}

/** The program that a label is of: its own name, or that of its schedules. */
export function programOfLabel(label: string): string {
  return label.startsWith(PREFIX) ? label.slice(PREFIX.length) : label
}

export function isScheduleLabel(label: string): boolean {
  return label.startsWith(PREFIX)
}

/** The log of a schedule is a thread of its own. */
export function scheduleThread(name: string): ThreadIdInput {
  return { schedule: name }
}

export function readSchedule({ state }: Fold): ScheduleRecord | undefined {
  return state['schedule'] as unknown as ScheduleRecord | undefined
}

/** What the index says about a schedule, so that workers find it in time. */
function scheduleIndex({ program, version, paused, next, extra }: ScheduleRecord): IndexPatch {
  const due = [...extra, ...(paused || next === null ? [] : [next])]
  return {
    status: paused ? 'suspended' : next === null ? 'ended' : 'scheduled',
    wakeAt: due.length === 0 ? null : Math.min(...due),
    metadata: {
      [PROGRAM]: scheduleLabel(program),
      [VERSION]: version,
      [SCHEDULE]: true,
      [RETENTION]: KEPT,
      [CAPPED]: true,
    },
  }
}

/** Writes what changed: the input of a schedule may be large, and its occurrences many. */
export function changeSchedule(before: ScheduleRecord | undefined, after: ScheduleRecord): Draft {
  const ops = before === undefined ? [set('schedule', after)] : differences(before, after)
  return { kind: 'schedule', ops, index: scheduleIndex(after) }
}

function differences(before: ScheduleRecord, after: ScheduleRecord): readonly Op[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof ScheduleRecord)[]
  return names
    .filter((name) => !isDeepStrictEqual(before[name], after[name]))
    .map((name) => (after[name] === undefined ? remove(['schedule', name]) : set(['schedule', name], after[name])))
}
