import { ClosedError, UnavailableError } from '../core/errors.js'
import type { Driver } from '../log/contract.js'

/** The methods of a driver that reach the store. */
export type DriverMethod = Exclude<
  {
    [Name in keyof Driver]-?: Driver[Name] extends ((...args: never[]) => Promise<unknown>) | undefined ? Name : never
  }[keyof Driver],
  'close' | 'subscribe' | undefined
>

/** On which side of the store a call is lost. */
export type FaultMoment =
  /** The call never reaches the store. */
  | 'before'
  /** The store performed it, but the reply is lost. */
  | 'after'

/** A driver that fails when it is told to. */
export interface FaultyDriver extends Driver {
  /** The next call of this method fails once, with an outcome its caller can't know. */
  loseNext(method: DriverMethod, moment: FaultMoment): void
  /** The process dies at the nth call from now on (1: the next): that call fails at this moment, all later ones too. */
  crashAt(call: number, moment: FaultMoment): void
  /** Calls made so far. */
  readonly calls: number
  readonly crashed: boolean
}

const METHODS: readonly DriverMethod[] = [
  'append',
  'tail',
  'read',
  'confirm',
  'headers',
  'head',
  'renew',
  'heads',
  'takeDue',
  'positions',
  'prune',
  'erase',
  'tombstone',
  'reindex',
  'touchBlobs',
  'putBlobs',
  'getBlobs',
  'listBlobs',
  'removeBlob',
  'writeItems',
  'readItems',
  'scanItems',
  'listSpaces',
  'sweepItems',
  'applyWrites',
  'listTenants',
  'listTombstones',
  'bury',
  'transact',
  'now',
]

/**
 * A driver that does what the underlying one does, until it is told to fail. Closing it leaves the underlying one open.
 */
export function faultyDriver(driver: Driver): FaultyDriver {
  const lost = new Map<DriverMethod, FaultMoment[]>()
  let calls = 0
  let crashCall = Number.POSITIVE_INFINITY
  let crashMoment: FaultMoment = 'before'
  let closed = false

  const unknownOutcome = (): UnavailableError => new UnavailableError('The connection broke.', { written: 'unknown' })
  // A dead process receives nothing more. ClosedError ends whatever waits for it at once, as death does.
  const dead = (): ClosedError => new ClosedError('This process')

  const call = async (method: DriverMethod, args: unknown[]): Promise<unknown> => {
    if (closed || calls >= crashCall) throw dead()
    const dies = ++calls === crashCall
    const loses = lost.get(method)?.shift()
    if (dies && crashMoment === 'before') throw dead()
    if (loses === 'before') throw unknownOutcome()
    const result = await (driver[method] as (...args: unknown[]) => Promise<unknown>).apply(driver, args)
    if (dies || closed) throw dead()
    if (loses === 'after') throw unknownOutcome()
    return result
  }

  const faulty = {
    name: `faulty ${driver.name}`,
    capabilities: driver.capabilities,
    survives: driver.survives,
    get calls() {
      return calls
    },
    get crashed() {
      return closed || calls >= crashCall
    },
    loseNext(method: DriverMethod, moment: FaultMoment) {
      lost.set(method, [...(lost.get(method) ?? []), moment])
    },
    crashAt(nth: number, moment: FaultMoment) {
      crashCall = calls + nth
      crashMoment = moment
    },
    async close() {
      closed = true
    },
  }
  for (const method of METHODS) {
    if (driver[method] !== undefined) Object.assign(faulty, { [method]: (...args: unknown[]) => call(method, args) })
  }
  return faulty as unknown as FaultyDriver
}
