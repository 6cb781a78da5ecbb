/**
 * Time as Holdfast sees it. Wall time dates entries and decides expiry; monotonic time with a boot id decides
 * leases on one machine, where a wall clock that jumps must not hand a thread to two workers.
 */
export interface Clock {
  /** Wall-clock milliseconds since 1970. */
  now(): number
  /** Milliseconds that only ever increase, shared by all processes of one boot. */
  monotonic(): number
  /** Identifies this boot of this machine: monotonic times of another boot can't be compared with it. */
  readonly bootId: string
  /**
   * True for a machine's own clock. Times that several processes must agree on are then taken from the store's own
   * clock, if it has one. Absent: this clock is the time for everybody, as in tests.
   */
  readonly canBeWrong?: boolean
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}
