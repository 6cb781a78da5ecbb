/** Labels by which workers and tools find the threads of a program. */
export { PROGRAM_LABEL as PROGRAM } from '../../../log/contract.js'
export const VERSION = 'holdfast.version'
/** What the program, or whoever opened the thread, said about how long it is kept. Absent: what the store says. */
export const RETENTION = 'holdfast.retention'
/** Set where that says which checkpoints are kept, so that sweeps find those threads. */
export const CAPPED = 'holdfast.capped'
/** Set where the program keeps its states in a thread of their own, `{ <label>: id }`: what erases the one erases both. */
export const COMPANION = 'holdfast.companion'
/** Set on the log of a schedule, which no program may run. */
export const SCHEDULE = 'holdfast.schedule'
/** On a thread that a run of another thread started: the id of that one, in its stored form. */
export const PARENT = 'holdfast.parent'
/** Set on a thread whose runs have started others: erasing it erases those too. */
export const CHILDREN = 'holdfast.children'
/** Set on a thread whose run failed while it has open questions. */
export const ASKS = 'holdfast.asks'
