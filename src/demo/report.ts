/** How the day went. */
export interface DemoReport {
  readonly store: string
  readonly tenant: string
  readonly seed: number
  readonly sessions: number
  /** Conversations that, read back from the store, have every message answered, in order and rightly. */
  readonly completed: number
  readonly lost: number
  /** Returns that were opened twice, as the shop's own database has it. */
  readonly doubled: number
  readonly kills: number
  /** Conversations that were taken over from a killed worker. */
  readonly takeovers: number
  readonly takeoverMsP50: number | null
  readonly takeoverMsP99: number | null
  /** Messages of customers that were answered. */
  readonly turns: number
  /** Returns and exchanges in the shop. */
  readonly effects: number
  /** As the model's server counted them, replies that nobody was left to read included. */
  readonly tokensSpent: number
  /** The same, and what beginning each taken-over conversation anew would have spent once more. */
  readonly tokensIfRestarted: number
  readonly modelCalls: number
  readonly bytesPerTurn: number
  /** What was measured for `bytesPerTurn`. */
  readonly bytesMeasured: 'file' | 'entries'
  readonly saveMsP50: number | null
  readonly saveMsP99: number | null
  readonly loadMsP50: number | null
  readonly loadMsP99: number | null
  /** Loads that a cache in front of the store answered, of all that asked it, and those that it answered wrongly. */
  readonly cache: { readonly hits: number; readonly loads: number; readonly outdated: number } | null
  /** Conversations of which every hash was checked at the end. */
  readonly chainsVerified: number
  readonly chainsSampled: number
  readonly seconds: number
  readonly turnsPerSecond: number
  /** The conversation that changed hands most often: one to look at. */
  readonly example: string
  /** What went wrong, the first of it. Empty on a good day. */
  readonly problems: readonly string[]
}

/** True only when nothing is missing and nothing happened twice. */
export function isGoodDay({ sessions, completed, lost, doubled }: DemoReport): boolean {
  return completed === sessions && lost === 0 && doubled === 0
}
