import assert from 'node:assert/strict'
import { isHoldfastError } from 'holdfast'
import type { Driver } from 'holdfast/driver'
import { type Claim, type Log, LogStore, ops } from 'holdfast/log'
import { type FaultMoment, type FaultyDriver, faultyDriver } from 'holdfast/testing'
import fc from 'fast-check'
import type { ThreadId } from 'holdfast'
import type { Clock, LogKey } from 'holdfast/driver'
import type { TenantId, BranchId, Fold } from 'holdfast/log'

const { push, remove, set } = ops

/** What a log should hold, kept by the plainest code: one state per entry, no deltas, no keyframes, no hashes. */
interface ModelState {
  readonly items: readonly string[]
  readonly map: Readonly<Record<string, string>>
  readonly tags: Readonly<Record<string, number>>
}

interface ModelBranch {
  states: ModelState[]
  base: number
  epoch: number
}

export interface Model {
  readonly branches: Map<string, ModelBranch>
  counter: number
}

interface Process {
  driver: FaultyDriver
  store: LogStore
  logs: Map<string, Log>
  claims: Map<string, Claim>
}

export interface Real {
  readonly driver: Driver
  readonly tenant: TenantId
  readonly processes: Process[]
  readonly clock: Clock
}

const EMPTY: ModelState = { items: [], map: {}, tags: {} }
const BRANCHES = ['main', 'b1', 'b2'] as const
const PROCESSES = 3

/** Time that passes only by sleeping, and at once: retries cost nothing. */
function eagerClock(): Clock {
  let elapsed = 1000
  return {
    bootId: 'model',
    now: () => 1_700_000_000_000 + Math.floor(elapsed),
    monotonic: () => elapsed,
    sleep: async (ms) => {
      elapsed += Math.max(ms, 1)
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

function setUp(driver: Driver, tenant: string): { model: Model; real: Real } {
  const clock = eagerClock()
  const real: Real = { driver, tenant: tenant as TenantId, processes: [], clock }
  for (let i = 0; i < PROCESSES; i++) real.processes.push(startProcess(real))
  return { model: { branches: new Map(), counter: 0 }, real }
}

function startProcess({ driver, clock }: Pick<Real, 'driver' | 'clock'>): Process {
  const faulty = faultyDriver(driver)
  const store = new LogStore(faulty, { clock, retryMs: 5000, blobThreshold: 2048 })
  return { driver: faulty, store, logs: new Map(), claims: new Map() }
}

function keyOf(real: Real, branch: string): LogKey {
  return { tenant: real.tenant, thread: 'model' as ThreadId, branch: branch as BranchId }
}

async function logOf(real: Real, process: number, branch: string): Promise<Log> {
  const { store, logs } = real.processes[process]
  const log = logs.get(branch) ?? (await store.open(keyOf(real, branch)))
  logs.set(branch, log)
  return log
}

function plain(fold: Fold): ModelState {
  return {
    items: (fold.state.items ?? []) as string[],
    map: (fold.state.map ?? {}) as Record<string, string>,
    tags: fold.index.tags,
  }
}

/** Reads the log through a process that has seen nothing yet, and checks every state that is kept. */
async function checkBranch(model: Model, real: Real, branch: string): Promise<void> {
  const expected = model.branches.get(branch)
  const store = new LogStore(real.driver, { clock: real.clock, blobThreshold: 2048 })
  const log = await store.open(keyOf(real, branch))
  assert.equal(log.exists, expected !== undefined, `branch ${branch} exists`)
  if (!expected) return
  assert.deepEqual(plain(log.fold), expected.states.at(-1))
  assert.equal(log.fold.seq, expected.states.length - 1)
  assert.equal(log.fold.epoch, expected.epoch)
  const report = await store.verify(keyOf(real, branch))
  assert.deepEqual(report?.problems, [])
}

/** After an attempt whose outcome the writer does not know: what the log now holds is the old state or the new one. */
async function adopt(
  model: Model,
  real: Real,
  branch: string,
  next: readonly ModelState[],
  epoch: number,
): Promise<boolean> {
  const store = new LogStore(real.driver, { clock: real.clock, blobThreshold: 2048 })
  const log = await store.open(keyOf(real, branch))
  const known = model.branches.get(branch)
  const before = known?.states.length ?? 0
  const length = log.fold.seq + 1
  assert.ok(
    length === before || length === before + next.length,
    `an append is whole or absent: ${before} -> ${length}`,
  )
  if (length === before) return false
  record(model, branch, next, epoch)
  return true
}

function record(model: Model, branch: string, next: readonly ModelState[], epoch: number): void {
  const known = model.branches.get(branch) ?? { states: [], base: 0, epoch: 0 }
  known.states.push(...next)
  known.epoch = epoch
  model.branches.set(branch, known)
}

type Change =
  | { readonly do: 'push'; readonly size: number }
  | { readonly do: 'set'; readonly key: string; readonly size: number }
  | { readonly do: 'delete'; readonly key: string }

function text(model: Model, size: number): string {
  const id = `v${++model.counter}`
  return id + 'abcdefgh'.repeat(Math.ceil(size / 8)).slice(0, Math.max(0, size - id.length))
}

/** The same change for the log and for the model. */
function realize(model: Model, changes: readonly Change[]) {
  const fixed = changes.map((change) => ({ ...change, text: change.do === 'delete' ? '' : text(model, change.size) }))
  const drafts = fixed.map((change) => ({
    kind: 'signal',
    ops: [
      change.do === 'push'
        ? push('items', change.text)
        : change.do === 'set'
          ? set(['map', change.key], change.text)
          : remove(['map', change.key]),
    ],
  }))
  const apply = (state: ModelState): ModelState[] =>
    fixed.map((change) => {
      const map = { ...state.map }
      if (change.do === 'set')
        Object.defineProperty(map, change.key, {
          value: change.text,
          enumerable: true,
          configurable: true,
          writable: true,
        })
      if (change.do === 'delete') delete map[change.key]
      state = { ...state, map, items: change.do === 'push' ? [...state.items, change.text] : state.items }
      return state
    })
  return { drafts, apply }
}

function stateOf(model: Model, branch: string): ModelState {
  return model.branches.get(branch)?.states.at(-1) ?? EMPTY
}

function epochOf(model: Model, branch: string): number {
  return model.branches.get(branch)?.epoch ?? 0
}

/** A handle may know of an erased thread; then it must be opened again, and says so. */
async function freshOnGone(
  real: Real,
  process: number,
  branch: string,
  run: (log: Log) => Promise<void>,
): Promise<void> {
  try {
    await run(await logOf(real, process, branch))
  } catch (error) {
    const gone = isHoldfastError(error, 'not-found') || isHoldfastError(error, 'conflict')
    if (!gone) throw error
    real.processes[process].logs.delete(branch)
    await run(await logOf(real, process, branch))
  }
}

class Append implements fc.AsyncCommand<Model, Real> {
  constructor(
    readonly process: number,
    readonly branch: string,
    readonly changes: readonly Change[],
    readonly loss: FaultMoment | undefined,
  ) {}
  check(model: Readonly<Model>): boolean {
    return this.branch === 'main' || model.branches.has(this.branch)
  }
  async run(model: Model, real: Real): Promise<void> {
    const { drafts, apply } = realize(model, this.changes)
    if (this.loss) real.processes[this.process].driver.loseNext('append', this.loss)
    await freshOnGone(real, this.process, this.branch, async (log) => {
      const { entries, fold } = await log.update(() => drafts)
      assert.equal(entries.length, drafts.length)
      record(model, this.branch, apply(stateOf(model, this.branch)), epochOf(model, this.branch))
      assert.deepEqual(plain(fold), stateOf(model, this.branch))
    })
  }
  toString(): string {
    return `append(p${this.process}, ${this.branch}, ${JSON.stringify(this.changes)}, lose ${this.loss})`
  }
}

class Race implements fc.AsyncCommand<Model, Real> {
  constructor(
    readonly branch: string,
    readonly count: number,
    readonly loss: FaultMoment | undefined,
  ) {}
  check(model: Readonly<Model>): boolean {
    return model.branches.has(this.branch)
  }
  async run(model: Model, real: Real): Promise<void> {
    if (this.loss) real.processes[0].driver.loseNext('append', this.loss)
    const before = stateOf(model, this.branch)
    const ids = Array.from({ length: this.count }, () => text(model, 8))
    await Promise.all(
      ids.map((id, i) =>
        freshOnGone(real, i % PROCESSES, this.branch, async (log) => {
          await log.update(() => [{ kind: 'signal', ops: [push('items', id)] }])
        }),
      ),
    )
    const store = new LogStore(real.driver, { clock: real.clock, blobThreshold: 2048 })
    const log = await store.open(keyOf(real, this.branch))
    const landed = plain(log.fold).items.slice(before.items.length)
    assert.deepEqual([...landed].sort(), [...ids].sort(), 'each of the racing appends landed exactly once')
    const states: ModelState[] = []
    for (const id of landed)
      states.push({ ...(states.at(-1) ?? before), items: [...(states.at(-1) ?? before).items, id] })
    record(model, this.branch, states, epochOf(model, this.branch))
  }
  toString(): string {
    return `race(${this.branch}, ${this.count}, lose ${this.loss})`
  }
}

class Crash implements fc.AsyncCommand<Model, Real> {
  constructor(
    readonly process: number,
    readonly branch: string,
    readonly changes: readonly Change[],
    readonly at: number,
    readonly moment: FaultMoment,
  ) {}
  check(model: Readonly<Model>): boolean {
    return this.branch === 'main' || model.branches.has(this.branch)
  }
  async run(model: Model, real: Real): Promise<void> {
    const { drafts, apply } = realize(model, this.changes)
    real.processes[this.process].driver.crashAt(this.at, this.moment)
    const next = apply(stateOf(model, this.branch))
    let acknowledged = false
    try {
      await freshOnGone(real, this.process, this.branch, async (log) => {
        await log.update(() => drafts)
        acknowledged = true
      })
    } catch (error) {
      assert.ok(isHoldfastError(error, 'closed'), `only the crash may fail it: ${String(error)}`)
    }
    const landed = await adopt(model, real, this.branch, next, epochOf(model, this.branch))
    assert.ok(landed || !acknowledged, 'an acknowledged append is never lost')
    real.processes[this.process] = startProcess(real)
  }
  toString(): string {
    return `crash(p${this.process}, ${this.branch}, ${JSON.stringify(this.changes)}, ${this.moment} call ${this.at})`
  }
}

class TakeClaim implements fc.AsyncCommand<Model, Real> {
  constructor(
    readonly process: number,
    readonly branch: string,
    readonly loss: FaultMoment | undefined,
  ) {}
  check(model: Readonly<Model>): boolean {
    return model.branches.has(this.branch)
  }
  async run(model: Model, real: Real): Promise<void> {
    if (this.loss) real.processes[this.process].driver.loseNext('append', this.loss)
    await freshOnGone(real, this.process, this.branch, async (log) => {
      const claim = await log.claim({ owner: `p${this.process}`, ms: 1000, force: true })
      assert.equal(claim.epoch, epochOf(model, this.branch) + 1, 'every claim raises the epoch by one')
      record(model, this.branch, [stateOf(model, this.branch)], claim.epoch)
      real.processes[this.process].claims.set(this.branch, claim)
    })
  }
  toString(): string {
    return `claim(p${this.process}, ${this.branch}, lose ${this.loss})`
  }
}

class AppendAsOwner implements fc.AsyncCommand<Model, Real> {
  constructor(
    readonly process: number,
    readonly branch: string,
    readonly changes: readonly Change[],
    readonly loss: FaultMoment | undefined,
  ) {}
  check(): boolean {
    return true
  }
  async run(model: Model, real: Real): Promise<void> {
    const process = real.processes[this.process]
    const claim = process.claims.get(this.branch)
    if (!claim) return
    const { drafts, apply } = realize(model, this.changes)
    if (this.loss) process.driver.loseNext('append', this.loss)
    const mayWrite = claim.epoch === epochOf(model, this.branch) && model.branches.has(this.branch)
    try {
      await claim.update(() => drafts.map((draft) => ({ ...draft, kind: 'step' })))
      assert.ok(mayWrite, 'a fenced owner never writes')
      record(model, this.branch, apply(stateOf(model, this.branch)), claim.epoch)
    } catch (error) {
      const refused = ['fenced', 'not-found', 'conflict'].some((code) => isHoldfastError(error, code as 'fenced'))
      if (!refused || (mayWrite && isHoldfastError(error, 'fenced'))) throw error
      process.claims.delete(this.branch)
      process.logs.delete(this.branch)
    }
  }
  toString(): string {
    return `append as owner(p${this.process}, ${this.branch}, ${JSON.stringify(this.changes)}, lose ${this.loss})`
  }
}

class Fork implements fc.AsyncCommand<Model, Real> {
  constructor(
    readonly process: number,
    readonly from: string,
    readonly to: string,
    readonly where: number,
  ) {}
  check(model: Readonly<Model>): boolean {
    return model.branches.has(this.from) && this.from !== this.to
  }
  async run(model: Model, real: Real): Promise<void> {
    const parent = model.branches.get(this.from) as ModelBranch
    const seq = parent.base + Math.floor(this.where * (parent.states.length - parent.base))
    await freshOnGone(real, this.process, this.from, async (log) => {
      try {
        await log.fork({ at: seq, branch: this.to, draft: { ops: [set(['map', 'forked'], `at ${seq}`)] } })
        assert.ok(!model.branches.has(this.to), 'a fork never replaces a branch')
        const state = parent.states[seq]
        record(model, this.to, [{ items: state.items, tags: {}, map: { ...state.map, forked: `at ${seq}` } }], 0)
      } catch (error) {
        if (!isHoldfastError(error, 'conflict') || !model.branches.has(this.to)) throw error
      }
      real.processes[this.process].logs.delete(this.to)
    })
  }
  toString(): string {
    return `fork(p${this.process}, ${this.from} -> ${this.to}, ${this.where})`
  }
}

class Tag implements fc.AsyncCommand<Model, Real> {
  constructor(
    readonly process: number,
    readonly branch: string,
    readonly name: string,
    readonly where: number,
  ) {}
  check(model: Readonly<Model>): boolean {
    return model.branches.has(this.branch)
  }
  async run(model: Model, real: Real): Promise<void> {
    const { states, base } = model.branches.get(this.branch) as ModelBranch
    const seq = base + Math.floor(this.where * (states.length - base))
    await freshOnGone(real, this.process, this.branch, async (log) => {
      await log.tag(this.name, seq)
      const state = stateOf(model, this.branch)
      record(model, this.branch, [{ ...state, tags: { ...state.tags, [this.name]: seq } }], epochOf(model, this.branch))
    })
  }
  toString(): string {
    return `tag(p${this.process}, ${this.branch}, ${this.name}, ${this.where})`
  }
}

class Prune implements fc.AsyncCommand<Model, Real> {
  constructor(
    readonly process: number,
    readonly branch: string,
    readonly where: number,
  ) {}
  check(model: Readonly<Model>): boolean {
    return model.branches.has(this.branch)
  }
  async run(model: Model, real: Real): Promise<void> {
    const branch = model.branches.get(this.branch) as ModelBranch
    const seq = branch.base + Math.floor(this.where * (branch.states.length - branch.base))
    const { store } = real.processes[this.process]
    await store.prune(keyOf(real, this.branch), seq, { evenTagged: true })
    const head = await real.driver.head(keyOf(real, this.branch))
    assert.ok(head && head.base.seq <= seq && head.base.seq >= branch.base, 'what was asked to stay stays')
    branch.base = head.base.seq
  }
  toString(): string {
    return `prune(p${this.process}, ${this.branch}, ${this.where})`
  }
}

class Erase implements fc.AsyncCommand<Model, Real> {
  check(model: Readonly<Model>): boolean {
    return model.branches.size > 0
  }
  async run(model: Model, real: Real): Promise<void> {
    const tombstone = { at: real.clock.now(), reason: 'test' }
    await real.processes[0].store.erase({ tenant: real.tenant, thread: 'model' as ThreadId, tombstone })
    model.branches.clear()
  }
  toString(): string {
    return 'erase()'
  }
}

class ReadPast implements fc.AsyncCommand<Model, Real> {
  constructor(
    readonly process: number,
    readonly branch: string,
    readonly where: number,
  ) {}
  check(model: Readonly<Model>): boolean {
    return model.branches.has(this.branch)
  }
  async run(model: Model, real: Real): Promise<void> {
    const { states, base } = model.branches.get(this.branch) as ModelBranch
    const seq = Math.floor(this.where * states.length)
    await freshOnGone(real, this.process, this.branch, async (log) => {
      // A fold that was handed out never changes, whatever is read or written after it.
      const held = log.fold
      const before = structuredClone(plain(held))
      await log.refresh()
      assert.deepEqual(plain(held), before)
      if (seq < base) {
        await assert.rejects(log.at(seq), (error) => isHoldfastError(error, 'not-found'))
      } else {
        assert.deepEqual(plain(await log.at(seq)), states[seq])
      }
    })
  }
  toString(): string {
    return `read(p${this.process}, ${this.branch}, ${this.where})`
  }
}

class Collect implements fc.AsyncCommand<Model, Real> {
  check(): boolean {
    return true
  }
  async run(_: Model, real: Real): Promise<void> {
    await real.processes[0].store.collectBlobs(real.tenant, { graceMs: Number.NEGATIVE_INFINITY })
  }
  toString(): string {
    return 'collect blobs()'
  }
}

class CheckAll implements fc.AsyncCommand<Model, Real> {
  check(): boolean {
    return true
  }
  async run(model: Model, real: Real): Promise<void> {
    for (const branch of BRANCHES) await checkBranch(model, real, branch)
  }
  toString(): string {
    return 'check()'
  }
}

const process = fc.nat({ max: PROCESSES - 1 })
const branch = fc.constantFrom(...BRANCHES)
const where = fc.double({ min: 0, max: 0.999, noNaN: true })
const size = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 60 }) },
  { weight: 2, arbitrary: fc.constant(1900) },
  fc.constant(2500),
  fc.constant(20_000),
)
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ do: fc.constant('push' as const), size }),
  fc.record({ do: fc.constant('set' as const), key: fc.constantFrom('a', 'b', '__proto__', 'constructor'), size }),
  fc.record({ do: fc.constant('delete' as const), key: fc.constantFrom('a', 'b', '__proto__') }),
)
const changes = fc.array(change, { minLength: 1, maxLength: 3 })
const loss = fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, fc.constantFrom<FaultMoment>('before', 'after'))
const moment = fc.constantFrom<FaultMoment>('before', 'after')

/** Random histories of several processes on one thread. */
function commands(maxCommands: number) {
  return fc.commands(
    [
      fc.tuple(process, branch, changes, loss).map((args) => new Append(...args)),
      fc.tuple(process, branch, changes, loss).map((args) => new Append(...args)),
      fc.tuple(branch, fc.integer({ min: 2, max: 6 }), loss).map((args) => new Race(...args)),
      fc.tuple(process, branch, changes, fc.integer({ min: 1, max: 5 }), moment).map((args) => new Crash(...args)),
      fc.tuple(process, branch, loss).map((args) => new TakeClaim(...args)),
      fc.tuple(process, branch, changes, loss).map((args) => new AppendAsOwner(...args)),
      fc.tuple(process, branch, branch, where).map((args) => new Fork(...args)),
      fc.tuple(process, branch, fc.constantFrom('x', 'y'), where).map((args) => new Tag(...args)),
      fc.tuple(process, branch, where).map((args) => new Prune(...args)),
      fc.constant(new Erase()),
      fc.tuple(process, branch, where).map((args) => new ReadPast(...args)),
      fc.constant(new Collect()),
      fc.constant(new CheckAll()),
    ],
    { maxCommands, size: 'max' },
  )
}

/** Runs random histories against the model, on a store that `open` gives, each under a tenant of its own. */
export async function runModel(
  open: () => Promise<Driver>,
  settings: { numRuns: number; seed?: number; path?: string },
  maxCommands = 40,
) {
  const driver = await open()
  let round = 0
  try {
    await fc.assert(
      fc.asyncProperty(commands(maxCommands), async (list) => {
        const { model, real } = setUp(driver, `model-${Math.random().toString(36).slice(2)}-${round++}`)
        await fc.asyncModelRun(() => ({ model, real }), [...list, new CheckAll()])
        await driver.erase({ tenant: real.tenant, thread: 'model' as ThreadId, tombstone: null })
      }),
      settings,
    )
  } finally {
    await driver.close()
  }
}
