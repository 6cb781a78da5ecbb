/** Labels by which workers and tools find the threads of a program. */
export const PROGRAM = 'holdfast.program'
export const VERSION = 'holdfast.version'
/** Set on a thread whose run failed while it also has open questions. */
export const ASKS = 'holdfast.asks'
