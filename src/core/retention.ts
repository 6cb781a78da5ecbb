import { InvalidOptionError } from './errors.js'
import { suggestName } from './wording/option-names.js'

/** What is kept of a thread, and for how long. */
export interface RetentionRules {
  /**
   * How long a thread is kept after its newest entry, in milliseconds. Counted only while nothing in it is open: not
   * while a run is unfinished, a question is waiting for its answer or input is waiting for its turn. Default 7 days,
   * and 30 days for the documents of a pipeline; 'never': threads don't expire.
   */
  readonly ttlMs?: number | 'never'
  /** How many of the newest checkpoints of a branch are kept. Default: all. */
  readonly keepLast?: number
  /**
   * Checkpoints younger than this, in milliseconds, are kept. With `keepLast`, a checkpoint stays if either rule keeps
   * it.
   */
  readonly keepForMs?: number
}

/** Rules, or `'keep'`: everything stays until it is erased. */
export type Retention = RetentionRules | 'keep'

/** Rules for a whole store. */
export interface StoreRetentionRules extends RetentionRules {
  /**
   * Also applies `ttlMs` to threads that were started before there was a policy, and to those last used under a longer
   * one. Needs `ttlMs`. Default false: those stay.
   */
  readonly existing?: boolean
  /** Archives what these rules remove before it is removed. Needs the option `archive` of `openHoldfast`. Default false. */
  readonly archive?: boolean
  /** How long archived files are kept, in milliseconds, whoever archived them. Default: until somebody removes them. */
  readonly archiveForMs?: number
}

/** Like `Retention`, for a whole store. */
export type StoreRetention = StoreRetentionRules | 'keep'

/** Which checkpoints of a branch stay; the rule that keeps more wins. */
export interface Caps {
  readonly last?: number
  readonly forMs?: number
}

/** Rules that have been checked. What is absent is decided by the next in line: thread, program, store, default. */
export interface RetentionPolicy {
  readonly ttlMs?: number | 'never'
  readonly caps?: Caps | 'none'
}

export interface StoreRetentionPolicy extends RetentionPolicy {
  readonly existing: boolean
  readonly archive?: boolean
  readonly archiveForMs?: number
}

/** Why a sweep removed a thread, as its tombstone says it. */
export const EXPIRED = 'expired'
/** The same, if it was archived first. */
export const EXPIRED_TO_ARCHIVE = 'expired, and archived'

export function isExpiry(reason: string | undefined): boolean {
  return reason === EXPIRED || reason === EXPIRED_TO_ARCHIVE
}

const DAY_MS = 24 * 60 * 60 * 1000
/** For threads of programs that don't say otherwise. */
const DEFAULT_TTL_MS = 7 * DAY_MS
/** For the documents of a pipeline. */
export const DEFAULT_PIPELINE_TTL_MS = 30 * DAY_MS
/** A thousand years: anything longer means forever. */
const MAX_MS = 1000 * 366 * DAY_MS
const MAX_LAST = 1_000_000_000
/** Says in a thread's label that its rules are its own, and not its program's. */
const OWN = 'own'

/** Checks rules. `field` is where they were given, for messages. */
export function parseRetention(given: unknown, field = 'retention'): RetentionPolicy {
  if (given === 'keep') return { ttlMs: 'never', caps: 'none' }
  const { ttlMs, caps } = parse(given, field, RULES)
  return { ...(ttlMs === undefined ? {} : { ttlMs }), ...(caps === undefined ? {} : { caps }) }
}

/** Checks the rules of a store; undefined means the defaults. */
export function parseStoreRetention(given: unknown): StoreRetentionPolicy {
  if (given === undefined) return { existing: false }
  if (given === 'keep') return { ttlMs: 'never', caps: 'none', existing: false }
  return parse(given, 'retention', [...RULES, 'existing', 'archive', 'archiveForMs'])
}

const RULES = ['ttlMs', 'keepLast', 'keepForMs']

function parse(given: unknown, field: string, known: readonly string[]): StoreRetentionPolicy {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new InvalidOptionError(field, `is ${show(given)}`, "Pass 'keep', or an object such as { ttlMs: 604800000 }.")
  }
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue
    throw new InvalidOptionError(`${field}.${name}`, 'is not a retention rule', suggestName(name, known))
  }
  const { ttlMs, keepLast, keepForMs, existing = false, archive = false, archiveForMs } = given as StoreRetentionRules
  if (archiveForMs !== undefined) check(`${field}.archiveForMs`, archiveForMs, 1, MAX_MS, 'milliseconds')
  if (typeof archive !== 'boolean')
    throw new InvalidOptionError(`${field}.archive`, `is ${show(archive)}`, 'Pass true or false.')
  if (ttlMs !== undefined && ttlMs !== 'never') check(`${field}.ttlMs`, ttlMs, 1, MAX_MS, "milliseconds, or 'never'")
  if (keepLast !== undefined) check(`${field}.keepLast`, keepLast, 1, MAX_LAST, 'a number of checkpoints')
  if (keepForMs !== undefined) check(`${field}.keepForMs`, keepForMs, 1, MAX_MS, 'milliseconds')
  if (typeof existing !== 'boolean') {
    throw new InvalidOptionError(`${field}.existing`, `is ${show(existing)}`, 'Pass true or false.')
  }
  if (existing && typeof ttlMs !== 'number') {
    throw new InvalidOptionError(`${field}.existing`, 'needs ttlMs', 'Say with ttlMs how long those threads are kept.')
  }
  const caps = {
    ...(keepLast === undefined ? {} : { last: keepLast }),
    ...(keepForMs === undefined ? {} : { forMs: keepForMs }),
  }
  return {
    ...(ttlMs === undefined ? {} : { ttlMs }),
    ...(Object.keys(caps).length === 0 ? {} : { caps }),
    ...(archive ? { archive } : {}),
    ...(archiveForMs === undefined ? {} : { archiveForMs }),
    existing,
  }
}

function check(field: string, value: unknown, least: number, most: number, what: string): void {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return
  throw new InvalidOptionError(field, `is ${show(value)}`, `Pass ${what}: a whole number from ${least} to ${most}.`)
}

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}

/** How long a thread lives at rest; null: forever. The first policy that sets it decides. */
export function ttlOf(policies: readonly (RetentionPolicy | undefined)[], fallback: number = DEFAULT_TTL_MS) {
  const ttl = policies.find((policy) => policy?.ttlMs !== undefined)?.ttlMs ?? fallback
  return ttl === 'never' ? null : ttl
}

/** Which checkpoints stay; undefined: all. The first policy that sets it decides. */
export function capsOf(policies: readonly (RetentionPolicy | undefined)[]): Caps | undefined {
  const caps = policies.find((policy) => policy?.caps !== undefined)?.caps
  return caps === 'none' ? undefined : caps
}

/** The rules of a program or thread as a label of the thread, so that every process knows them from the index alone. */
export function formatPolicy({ ttlMs, caps }: RetentionPolicy, isOwn: boolean): string {
  const words = [
    ...(ttlMs === undefined ? [] : [`ttl=${ttlMs}`]),
    ...(caps === undefined ? [] : caps === 'none' ? ['all'] : []),
    ...(typeof caps === 'object' && caps.last !== undefined ? [`last=${caps.last}`] : []),
    ...(typeof caps === 'object' && caps.forMs !== undefined ? [`for=${caps.forMs}`] : []),
    ...(isOwn ? [OWN] : []),
  ]
  return words.join(' ')
}

/** The rules in a label. An unreadable label is ignored: such a thread is kept as if it had no rules of its own. */
export function readPolicy(label: unknown): (RetentionPolicy & { readonly isOwn: boolean }) | undefined {
  if (typeof label !== 'string') return undefined
  const words = label.split(' ')
  const number = (name: string) => {
    const found = words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
    return found !== undefined && /^[1-9]\d{0,15}$/.test(found) ? Number(found) : undefined
  }
  const ttl = words.includes('ttl=never') ? 'never' : number('ttl')
  const last = number('last')
  const forMs = number('for')
  const caps = { ...(last === undefined ? {} : { last }), ...(forMs === undefined ? {} : { forMs }) }
  return {
    ...(ttl === undefined ? {} : { ttlMs: ttl }),
    ...(words.includes('all') ? { caps: 'none' } : Object.keys(caps).length === 0 ? {} : { caps }),
    isOwn: words.includes(OWN),
  }
}

/**
 * What a store keeps under these rules, in one line for people, with the option that turns it off. No rules: the
 * defaults.
 */
export function describeRetention(retention?: StoreRetention): string {
  return describePolicy(parseStoreRetention(retention))
}

export function describePolicy(policy: StoreRetentionPolicy): string {
  const caps = capsOf([policy])
  const cut = [
    ...(caps?.last === undefined ? [] : [`the last ${caps.last} checkpoints`]),
    ...(caps?.forMs === undefined ? [] : [`those younger than ${spell(caps.forMs)}`]),
  ]
  const kept = cut.length === 0 ? '' : ` Of each branch ${cut.join(' and ')} are kept.`
  const files = policy.archiveForMs === undefined ? '' : `, and kept there for ${spell(policy.archiveForMs)}`
  const where = policy.archive ? `What goes is archived first${files}. ` : ''
  const off = `${where}retention: 'keep' turns this off.`
  if (policy.ttlMs === 'never')
    return cut.length === 0 ? "Everything is kept (retention: 'keep')." : `${kept.trim()} ${off}`
  const whose = policy.existing ? 'Threads' : 'Threads started under this policy'
  const pipelines = policy.ttlMs === undefined ? `, documents of pipelines after ${spell(DEFAULT_PIPELINE_TTL_MS)}` : ''
  return `${whose} expire ${spell(policy.ttlMs ?? DEFAULT_TTL_MS)} after their last use${pipelines}.${kept} ${off}`
}

function spell(ms: number): string {
  const units: readonly (readonly [number, string])[] = [
    [DAY_MS, 'day'],
    [3_600_000, 'hour'],
    [60_000, 'minute'],
    [1000, 'second'],
  ]
  const [size, name] = units.find(([size]) => ms >= size && ms % size === 0) ?? [1, 'millisecond']
  const count = ms / size
  return `${count} ${name}${count === 1 ? '' : 's'}`
}

/** What a sweep removed, or with `dryRun` would have removed. */
export interface SweepReport {
  readonly dryRun: boolean
  /** Threads that had expired. Each leaves a tombstone. */
  readonly threads: number
  /** Branches that were trimmed to what is kept of them. */
  readonly cut: number
  /** How many of the threads and branches have their entries in the archive now. */
  readonly archived: number
  /** Archived files that were kept long enough, and are gone. */
  readonly archives: number
  readonly entries: number
  /** Stored bytes of these entries. */
  readonly bytes: number
  /** Large values that nothing points to anymore. */
  readonly blobs: { readonly removed: number; readonly bytes: number }
  /** Expired items of the store. */
  readonly items: number
  /** Expired threads that were used while the sweep ran, and therefore stay. */
  readonly used: number
  /** Expired threads that can't be read, and stay for someone to look at. */
  readonly damaged: number
}

export function addReports(one: SweepReport, other: SweepReport): SweepReport {
  return {
    dryRun: one.dryRun,
    threads: one.threads + other.threads,
    cut: one.cut + other.cut,
    archived: one.archived + other.archived,
    archives: one.archives + other.archives,
    entries: one.entries + other.entries,
    bytes: one.bytes + other.bytes,
    blobs: { removed: one.blobs.removed + other.blobs.removed, bytes: one.blobs.bytes + other.blobs.bytes },
    items: one.items + other.items,
    used: one.used + other.used,
    damaged: one.damaged + other.damaged,
  }
}

/** Whether anything was removed. */
export function hasSwept({ threads, cut, archives, blobs, items }: SweepReport): boolean {
  return threads > 0 || cut > 0 || archives > 0 || blobs.removed > 0 || items > 0
}
