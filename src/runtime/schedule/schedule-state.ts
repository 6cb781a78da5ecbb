import type { Value } from '../../codec/value.js'
import type { ThreadIdInput } from '../../core/ids.js'
import type { IndexPatch } from '../../log/entry/index-state.js'
import type { Fold } from '../../log/entry/fold.js'
import { PROGRAM } from '../run/labels.js'
import type { Timetable } from './timetable.js'

/** What becomes of occurrences that nobody was there to start. */
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
  readonly timetable: Timetable
  readonly input?: Value
  /** The thread that takes all occurrences. Absent: each has its own. */
  readonly thread?: ThreadIdInput
  readonly missed: Missed
  readonly paused: boolean
  /** When the next occurrence is; null: never again. */
  readonly next: number | null
  /** Somebody asked for one more, besides those of the timetable. */
  readonly extra?: number
  readonly last?: LastOccurrence
  readonly started: number
  readonly skipped: number
}

/** Set on the log of a schedule. */
export const SCHEDULE = 'holdfast.schedule'

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

/** What the index says of a schedule, so that workers find it in time. */
export function scheduleIndex({ program, paused, next, extra }: ScheduleRecord): IndexPatch {
  const due = [extra, paused ? undefined : (next ?? undefined)].filter((at) => at !== undefined)
  return {
    status: paused ? 'suspended' : next === null ? 'ended' : 'scheduled',
    wakeAt: due.length === 0 ? null : Math.min(...due),
    metadata: { [PROGRAM]: scheduleLabel(program), [SCHEDULE]: true },
  }
}
