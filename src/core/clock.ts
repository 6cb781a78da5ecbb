/**
 * Time as Holdfast sees it. Wall time dates entries and decides expiry; monotonic time with a boot id decides
 * leases on one machine, where a wall clock that jumps must not hand a thread to two workers.
 */
export interface Clock {
  /** Milliseconds since 1970, by the wall. */
  now(): number
  /** Milliseconds that only ever grow, shared by all processes of one boot. */
  monotonic(): number
  /** Names this boot of this machine: monotonic times of another boot can't be compared with ours. */
  readonly bootId: string
  /**
   * True for the clock of a machine. Times that several processes go by are then those of the store's own clock, where it
   * has one. Absent: this clock is the time for everybody, as in tests.
   */
  readonly canBeWrong?: boolean
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}
