import { checkWhole, notAChoice } from '../../core/wording/choices.js'
import { InvalidOptionError } from '../../core/errors.js'
import { DEFAULT_TENANT, type TenantId } from '../../core/ids.js'
import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import { type DueGroup, type Head, LIMIT_LABEL, PROGRAM_LABEL } from '../../log/contract.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { type LaneItems, LimitLane } from './limit-lane.js'

/** How many threads run at once, or start in a period, across all workers that have the same limit. */
export interface WorkerLimit {
  /** The name of a program. Default: all programs of the worker, counted together. */
  readonly program?: string
  /**
   * What is counted together: 'program' (the default) counts all threads, 'tenant' those of each tenant, 'key' those of
   * each tenant and `limitKey`. Threads without a key are not limited per key.
   */
  readonly per?: 'program' | 'tenant' | 'key'
  /** How many run at once, 1 to 10,000. */
  readonly concurrency?: number
  /** How many start in any period of `perMs`, 1 to 1,000. Resuming a thread counts as a start too. */
  readonly rate?: { readonly count: number; readonly perMs: number }
}

const LIMIT: OptionNames<WorkerLimit> = { program: true, per: true, concurrency: true, rate: true }
const PER = ['program', 'tenant', 'key'] as const
const MOST_AT_ONCE = 10_000
const MOST_STARTS = 1000
const MOST_PERIOD_MS = 31 * 24 * 60 * 60 * 1000
/** How many groups the index is asked to skip. Threads of further groups are put aside when they turn up. */
const MOST_EXCEPT = 500
const ALL_PROGRAMS = '*'
/** How long giving slots back may delay stopping if the store does not answer. They end with their lease anyway. */
const LAST_WORD_MS = 2000
/** On a store with keys, what belongs to no tenant is sealed under this separate name. */
const OWN_TENANT = 'holdfast.limits' as TenantId

interface Lane {
  readonly lane: LimitLane
  /** What the index skips while it is full: groups, or all threads of these programs. */
  readonly groups: readonly DueGroup[]
  readonly programs: readonly string[]
  /** By the monotonic clock. */
  fullUntil: number
}

/** A thread's slots in all lanes that count it; or after how many milliseconds it is worth asking again. */
export type Admission = { readonly release: () => void } | { readonly retryMs: number }

/** The limits of a worker. Threads that no limit concerns cost nothing. */
export class Limits {
  readonly #environment: RuntimeEnvironment
  readonly #limits: readonly WorkerLimit[]
  readonly #programs: readonly string[]
  readonly #leaseMs: number
  readonly #onOpen: () => void
  readonly #lanes = new Map<string, Lane>()
  readonly #over = new AbortController()
  #renewing: Promise<void> | undefined

  constructor(
    environment: RuntimeEnvironment,
    options: {
      readonly limits: readonly WorkerLimit[]
      readonly programs: readonly string[]
      readonly leaseMs: number
      /** A slot became free. */
      readonly onOpen: () => void
    },
  ) {
    this.#environment = environment
    checkLimits(options.limits, options.programs)
    // The narrowest first: a thread that it refuses has written nothing to the others. Starts last: one that is given
    // back would have kept others from starting.
    const order = ({ rate, per = 'program' }: WorkerLimit) => (rate === undefined ? 0 : PER.length) - PER.indexOf(per)
    this.#limits = [...options.limits].sort((a, b) => order(a) - order(b))
    this.#programs = options.programs
    this.#leaseMs = options.leaseMs
    this.#onOpen = options.onOpen
  }

  /** What not to ask for now. */
  get full(): { readonly programs: ReadonlySet<string>; readonly except: readonly DueGroup[] } {
    const now = this.#environment.clock.monotonic()
    const full = [...this.#lanes.values()].filter(({ fullUntil }) => fullUntil > now)
    return {
      programs: new Set(full.flatMap(({ programs }) => programs)),
      except: full.flatMap(({ groups }) => groups).slice(0, MOST_EXCEPT),
    }
  }

  /** In how many milliseconds the first of those that are full is asked again. */
  get retryMs(): number | undefined {
    const now = this.#environment.clock.monotonic()
    const waits = [...this.#lanes.values()].map(({ fullUntil }) => fullUntil - now).filter((ms) => ms > 0)
    return waits.length === 0 ? undefined : Math.min(...waits)
  }

  /** Whether a thread would be refused as far as is known here. */
  isFull(head: Head): boolean {
    const now = this.#environment.clock.monotonic()
    return this.#lanesOf(head).some(({ fullUntil }) => fullUntil > now)
  }

  async admit(head: Head): Promise<Admission> {
    const id = this.#environment.randomId()
    const given: Lane[] = []
    const giveBack = (unused: boolean) => {
      for (const { lane } of given) lane.leave(id, unused)
      // Others may have been refused a slot that is free again.
      if (unused) for (const one of given) one.fullUntil = 0
    }
    for (const one of this.#lanesOf(head)) {
      try {
        const retryMs = await one.lane.ask(id)
        if (retryMs > 0) {
          giveBack(true)
          one.fullUntil = this.#environment.clock.monotonic() + retryMs
          return { retryMs }
        }
        given.push(one)
      } catch (error) {
        giveBack(true)
        throw error
      }
    }
    if (given.length > 0) this.#renewing ??= this.#renew()
    return {
      release: () => {
        giveBack(false)
        for (const one of given) one.fullUntil = 0
        if (given.length > 0) this.#onOpen()
      },
    }
  }

  /** Waits until every process can see what was given back. */
  async close(): Promise<void> {
    this.#over.abort()
    await this.#renewing
    const settled = Promise.all([...this.#lanes.values()].map(({ lane }) => lane.settled()))
    const isSettled = new AbortController()
    const enough = this.#environment.clock.sleep(LAST_WORD_MS, isSettled.signal).catch(() => {})
    await Promise.race([settled, enough])
    isSettled.abort()
  }

  #lanesOf({ log, index: { metadata } }: Head): readonly Lane[] {
    const program = String(metadata[PROGRAM_LABEL] ?? '')
    const key = metadata[LIMIT_LABEL]
    return this.#limits.flatMap((limit) => {
      const { per = 'program', program: of = ALL_PROGRAMS } = limit
      if (of !== ALL_PROGRAMS && of !== program) return []
      if (per === 'program') return [this.#lane(limit, [of, per])]
      if (per === 'tenant') return [this.#lane(limit, [of, per], log.tenant)]
      return key === undefined ? [] : [this.#lane(limit, [of, per, String(key)], log.tenant)]
    })
  }

  #lane(limit: WorkerLimit, name: readonly string[], tenant?: TenantId): Lane {
    const known = this.#lanes.get(JSON.stringify([tenant, ...name]))
    if (known) return known
    const { logs, store, clock } = this.#environment
    const [of = '', , key] = name
    const place = store(tenant ?? (logs.hasKeys ? OWN_TENANT : DEFAULT_TENANT)).scope({ holdfast: 'limits' })
    const items = place.collection('lanes', { ttlMs: this.#leaseMs }) as unknown as LaneItems
    const programs = of === ALL_PROGRAMS ? this.#programs : [of]
    const groups =
      tenant === undefined
        ? []
        : programs.map((program) => ({ program, tenant, ...(key === undefined ? {} : { key }) }))
    const lane: Lane = {
      lane: new LimitLane(items, JSON.stringify(name), limit, this.#leaseMs, clock),
      groups,
      programs: tenant === undefined ? programs : [],
      fullUntil: 0,
    }
    this.#tidy()
    this.#lanes.set(JSON.stringify([tenant, ...name]), lane)
    return lane
  }

  /** Drops lanes that nobody here uses; they are created again when needed. */
  #tidy(): void {
    if (this.#lanes.size < 1000) return
    const now = this.#environment.clock.monotonic()
    for (const [name, { lane, fullUntil }] of this.#lanes) {
      if (fullUntil <= now && lane.isIdle) this.#lanes.delete(name)
    }
  }

  async #renew(): Promise<void> {
    const { clock } = this.#environment
    while (!this.#over.signal.aborted) {
      await clock.sleep(this.#leaseMs / 3, this.#over.signal).catch(() => {})
      for (const { lane } of this.#lanes.values()) lane.renew()
    }
  }
}

function checkLimits(limits: readonly WorkerLimit[], programs: readonly string[]): void {
  if (!Array.isArray(limits)) throw new InvalidOptionError('limits', 'must be an array', 'Pass [{ concurrency: 5 }].')
  const seen = new Set<string>()
  for (const [i, limit] of limits.entries()) {
    const name = `limits[${i}]`
    checkOptionNames(name, limit, LIMIT)
    const { program, per = 'program', concurrency, rate } = limit
    if (!PER.includes(per)) throw notAChoice(`${name}.per`, per, PER)
    if (program !== undefined && !programs.includes(program)) {
      const remedy = `It has ${programs.join(', ')}.`
      throw new InvalidOptionError(
        `${name}.program`,
        `is ${JSON.stringify(program)}, which this worker does not have`,
        remedy,
      )
    }
    if (concurrency === undefined && rate === undefined) {
      throw new InvalidOptionError(name, 'limits nothing', 'Pass concurrency, rate or both.')
    }
    if (concurrency !== undefined) checkWhole(`${name}.concurrency`, concurrency, MOST_AT_ONCE)
    if (rate !== undefined) {
      checkOptionNames(`${name}.rate`, rate, { count: true, perMs: true })
      checkWhole(`${name}.rate.count`, rate.count, MOST_STARTS)
      checkWhole(`${name}.rate.perMs`, rate.perMs, MOST_PERIOD_MS)
    }
    const lane = JSON.stringify([program, per])
    if (seen.has(lane)) {
      throw new InvalidOptionError(name, 'counts the same as another limit', 'Combine them into one.')
    }
    seen.add(lane)
  }
}
