import { setMaxListeners } from 'node:events'
import type { Clock } from '../core/clock.js'
import { isHoldfastError } from '../core/errors.js'
import { onAbort } from '../core/on-abort.js'
import type { ThreadIdInput } from '../core/ids.js'
import { parseRetry, retryDelayMs } from '../runtime/step/attempt.js'
import { recordError, type RecordedError } from '../runtime/errors.js'
import { flow, type FlowProgram } from '../runtime/program/flow.js'
import { PROGRAM } from '../runtime/run/labels.js'
import type { Outcome } from '../runtime/run/outcome.js'
import { checkDocument, type Document, loadDocument, type LoadedDocument } from './document.js'
import { type DocumentInput, type DocumentResult, documentFlow, type DocumentWork, STALE } from './document-flow.js'
import type { Catalog } from './catalog.js'
import type { PipelineHost, PipelineRunOptions } from './open-pipeline.js'
import type { PipelinePlan } from './pipeline.js'
import { RateLimit } from './rate.js'
import { MOST_NAMES, type PipelineReport, Tally } from './report.js'
import { Slots } from './slots.js'
import type { AnyBatchStage } from './stage.js'

interface Settings extends PipelineRunOptions {
  readonly isWanted: (id: string) => boolean
  /** Only some documents are requested: those not seen are not missing. */
  readonly isPartial: boolean
}

/** How often a process checks what others did, while it waits for documents that they hold. */
const LOOK_MS = 250
/** How many histories one run removes at most. */
/** How many documents are started between two looks at what others did. */
const LOOK_EVERY = 32

/** One process's part of one run of a pipeline. */
export class PipelineRun {
  readonly #host: PipelineHost
  readonly #plan: PipelinePlan
  readonly #catalog: Catalog
  readonly #clock: Clock
  readonly #settings: Settings
  readonly #flow: FlowProgram<DocumentInput, DocumentResult>
  readonly #tally = new Tally()
  readonly #limits = new Map<AnyBatchStage, RateLimit>()
  readonly #slots: Slots
  readonly #stop = new AbortController()
  /** Documents that another process is working on. */
  #held = new Set<string>()
  #sinceLook = 0

  constructor(host: PipelineHost, plan: PipelinePlan, catalog: Catalog, clock: Clock, settings: Settings) {
    this.#host = host
    this.#plan = plan
    this.#catalog = catalog
    this.#clock = clock
    this.#settings = settings
    this.#flow = documentFlow(plan)
    this.#slots = new Slots(plan.concurrency)
    setMaxListeners(0, this.#stop.signal)
  }

  async run(): Promise<PipelineReport> {
    const { signal, isPartial, removeMissing } = this.#settings
    const letGo = onAbort(signal, () => this.#stop.abort(signal?.reason))
    try {
      if (this.#status !== 'completed') return this.#tally.report(this.#status, [])
      await this.#setUp()
      const seen = await this.#pass(this.#settings.isWanted, true)
      await this.#takeHeld()
      const missing = isPartial || this.#status !== 'completed' ? [] : this.#missing(seen)
      if (removeMissing) for (const id of missing.splice(0)) await this.#remove(id)
      if (this.#status === 'completed') await this.#expire()
      return this.#tally.report(this.#status, missing.slice(0, MOST_NAMES))
    } finally {
      letGo()
      await this.#catalog.flush()
    }
  }

  get #status(): PipelineReport['status'] {
    if (this.#settings.signal?.aborted) return 'stopped'
    const { status } = this.#catalog.control
    return status === 'running' ? 'completed' : status
  }

  /** Lets the sink create what it needs, one process at a time. */
  async #setUp(): Promise<void> {
    const { name, version, sink } = this.#plan
    if (!sink.setUp) return
    if (!sink.transactional) return sink.setUp()
    const { setUp } = sink
    const program = flow({ name: `${name} setup`, version, compatibleWith: '*' }, async (ctx) => {
      await ctx.transaction('setup', (sql) => setUp(sql))
    })
    const thread = this.#host.thread(program, { pipeline: name, part: 'setup' })
    const outcome = await thread.run({ input: null, key: `${version} ${crypto.randomUUID()}`, busy: 'queue' })
    if (outcome.status !== 'completed') throw failureOf(outcome)
  }

  /** Reads through the source once and starts what is wanted; returns the ids it saw, once all work is done. */
  async #pass(isWanted: (id: string) => boolean, counts: boolean): Promise<ReadonlySet<string>> {
    const { source, concurrency, ahead } = this.#plan
    const seen = new Set<string>()
    const running = new Set<Promise<void>>()
    let failure: { readonly error: unknown } | undefined
    try {
      for await (const yielded of typeof source === 'function' ? source() : source) {
        if (failure || this.#status !== 'completed') break
        const document = this.#check(yielded, counts)
        if (document === undefined) continue
        if (seen.has(document.id)) {
          if (counts) this.#tally.name('duplicates', document.id)
          continue
        }
        seen.add(document.id)
        if (!isWanted(document.id)) continue
        if (counts) this.#tally.found++
        if (this.#skips(document)) continue
        while (running.size >= concurrency + ahead) await Promise.race(running)
        await this.#lookSometimes()
        const task: Promise<void> = this.#take(document)
          .catch((error: unknown) => {
            failure ??= { error }
            this.#stop.abort(error)
          })
          .finally(() => running.delete(task))
        running.add(task)
      }
      if (counts) this.#tally.isScanned = failure === undefined
    } catch (error) {
      // The source failed: what is running is stopped, and the caller gets the error.
      this.#stop.abort(error)
      throw error
    } finally {
      await Promise.all(running)
    }
    // A document that is neither done nor recorded as failed: nobody who sees "completed" would look for it.
    if (failure) throw failure.error
    return seen
  }

  #check(yielded: unknown, counts: boolean): Document | undefined {
    try {
      return checkDocument(yielded)
    } catch (error) {
      const id = (yielded as { readonly id?: unknown } | null)?.id
      if (counts) this.#fail(typeof id === 'string' && id !== '' ? id.slice(0, 100) : '(no id)', recordError(error))
      return undefined
    }
  }

  /** Whether what is recorded is enough, without reading the document. */
  #skips({ id, hash }: Document): boolean {
    return hash !== undefined && this.#isSettled(id, hash)
  }

  #isSettled(id: string, hash: string): boolean {
    const record = this.#catalog.find(id)
    if (record === undefined || record.hash !== hash) return false
    if (record.status === 'done') {
      if (this.#held.delete(id)) this.#tally.elsewhere++
      else this.#tally.skipped++
    } else {
      if (this.#settings.retryFailed) return false
      if (record.error) this.#tally.failures.set(id, record.error)
    }
    this.#tell()
    return true
  }

  async #take(document: Document): Promise<void> {
    this.#tally.active++
    try {
      const loaded = await this.#load(document)
      if (loaded && !this.#isSettled(document.id, loaded.hash)) await this.#process(loaded)
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error
    } finally {
      this.#tally.active--
      this.#tell()
    }
  }

  async #load(document: Document): Promise<LoadedDocument | undefined> {
    const backoff = parseRetry(this.#plan.retry)
    for (let tried = 1; ; tried++) {
      try {
        return await loadDocument(document)
      } catch (error) {
        if (tried >= backoff.attempts || !backoff.retryIf(error)) {
          const { hash = '' } = document
          await this.#failed(document.id, hash, recordError(error))
          return undefined
        }
        await this.#clock.sleep(retryDelayMs(backoff, tried, Math.random), this.#stop.signal)
      }
    }
  }

  async #process(document: LoadedDocument): Promise<void> {
    const { version } = this.#plan
    const input = { document: document.id, hash: document.hash }
    const generation = this.#catalog.generationOf(document.id)
    // A second attempt, after a run with other content or of another version was given up.
    for (const isLastTry of [false, true]) {
      const { outcome, isOurs, isBehind } = await this.#runThread(document, input, generation)
      if (isBehind) {
        // Another process was faster again: it is looked at again, like one that others hold.
        if (isLastTry) return void this.#held.add(document.id)
        await this.#cancelStale(document.id)
        continue
      }
      if (outcome === undefined) return
      if (outcome.status === 'completed') {
        const { chunks, tokens } = outcome.output
        this.#count(document.id, outcome.output, isOurs)
        return this.#catalog.note(document.id, {
          status: 'done',
          hash: document.hash,
          version,
          chunks,
          tokens,
          generation: generation + 1,
        })
      }
      if (outcome.status === 'busy') return void this.#held.add(document.id)
      // Not recorded as failed: the next run sees whether somebody answered.
      if (outcome.status === 'paused') return this.#fail(document.id, errorOf(outcome))
      const isStale = outcome.status === 'incompatible' || (outcome.status === 'failed' && outcome.error.name === STALE)
      if (!isStale || isLastTry) return this.#failed(document.id, document.hash, errorOf(outcome))
      await this.#cancelStale(document.id)
    }
  }

  async #cancelStale(id: string): Promise<void> {
    await this.#thread(id).cancel({ reason: 'begun again with other content or by another version' })
  }

  async #runThread(
    document: LoadedDocument,
    input: DocumentInput,
    generation: number,
  ): Promise<{
    readonly outcome?: Outcome<unknown, DocumentResult>
    readonly isOurs: boolean
    /** A run with other content, or of another version, is in front of it, and can't continue with this document. */
    readonly isBehind?: boolean
  }> {
    const { version } = this.#plan
    const { leaseMs } = this.#settings
    const seat = this.#slots.seat()
    let counted = 0
    let isOurs = false
    const context: DocumentWork = {
      document,
      clock: this.#clock,
      seat,
      limitOf: (stage) => this.#limitOf(stage),
      begun: () => {
        isOurs = true
      },
      committed: (chunks) => {
        counted += chunks
        this.#tally.chunks += chunks
        this.#tell()
      },
    }
    try {
      const outcome = await this.#thread(document.id).run({
        input,
        key: `${version} ${generation} ${document.hash}`,
        context,
        signal: this.#stop.signal,
        ...(leaseMs === undefined ? {} : { leaseMs }),
      })
      return { outcome, isOurs }
    } catch (error) {
      if (this.#stop.signal.aborted) return { isOurs }
      if (isHoldfastError(error, 'missing-context')) return { isOurs, isBehind: true }
      // Taken over by another process, which counts its chunks.
      if (isHoldfastError(error, 'fenced')) {
        this.#tally.chunks -= counted
        this.#held.add(document.id)
        return { isOurs }
      }
      throw error
    } finally {
      seat.leave()
    }
  }

  #count(id: string, { chunks, tokens, resumed }: DocumentResult, isOurs: boolean): void {
    const wasHeld = this.#held.delete(id)
    this.#tally.failures.delete(id)
    if (chunks === 0) this.#tally.name('empty', id)
    if (!isOurs) {
      // It was finished by a process that had no time to note it.
      if (wasHeld) this.#tally.elsewhere++
      else this.#tally.skipped++
      return
    }
    this.#tally.successful++
    this.#tally.tokens += tokens
    if (resumed) this.#tally.resumed++
  }

  /** What others were working on: waits until it is done, or takes it over when they are gone. */
  async #takeHeld(): Promise<void> {
    while (this.#held.size > 0 && this.#status === 'completed') {
      await this.#catalog.flush()
      await this.#clock.sleep(LOOK_MS, this.#stop.signal).catch(() => {})
      await this.#catalog.refresh()
      const left = new Set([...this.#held].filter((id) => this.#catalog.find(id)?.status === undefined))
      for (const id of this.#held) {
        if (left.has(id)) continue
        this.#held.delete(id)
        this.#tally.elsewhere++
      }
      if (left.size > 0 && this.#status === 'completed') await this.#pass((id) => left.has(id), false)
      this.#tell()
    }
  }

  async #lookSometimes(): Promise<void> {
    if (++this.#sinceLook < LOOK_EVERY) return
    this.#sinceLook = 0
    await this.#catalog.refresh()
    if (this.#status !== 'completed') this.#stop.abort()
  }

  #missing(seen: ReadonlySet<string>): string[] {
    const missing: string[] = []
    for (const [id] of this.#catalog.all()) if (!seen.has(id)) missing.push(id)
    return missing
  }

  async #remove(id: string): Promise<void> {
    const input: DocumentInput = { document: id, hash: '', remove: true }
    await this.#thread(id).cancel({ reason: 'the document is gone' }).catch(ignoreMissing)
    const outcome = await this.#thread(id).run({
      input,
      key: `remove ${crypto.randomUUID()}`,
      signal: this.#stop.signal,
    })
    if (outcome.status !== 'completed') return this.#fail(id, errorOf(outcome))
    this.#tally.removed++
    const generation = this.#catalog.generationOf(id) + 1
    const { version } = this.#plan
    await this.#catalog.note(id, { status: 'removed', hash: '', version, chunks: 0, tokens: 0, generation })
  }

  /** Removes the history of documents that were finished long ago: a pipeline may be all that runs on its store. */
  async #expire(): Promise<void> {
    const { name, retention } = this.#plan
    if (retention === 'keep' || retention?.ttlMs === 'never') return
    // What the pipeline itself says also applies to documents from before it said so.
    const named = retention?.ttlMs === undefined ? {} : { retention: { ttlMs: retention.ttlMs, existing: true } }
    const { threads } = await this.#host.sweep({
      metadata: { [PROGRAM]: name },
      signal: this.#stop.signal,
      ...named,
    })
    this.#tally.expired += threads
  }

  async #failed(id: string, hash: string, error: RecordedError): Promise<void> {
    this.#held.delete(id)
    this.#fail(id, error)
    const { version } = this.#plan
    const generation = this.#catalog.generationOf(id)
    await this.#catalog.note(id, { status: 'failed', hash, version, chunks: 0, tokens: 0, generation, error })
  }

  #fail(id: string, error: RecordedError): void {
    this.#tally.failures.set(id, error)
    this.#tell()
  }

  #thread(document: string) {
    return this.#host.thread(this.#flow, threadOf(this.#plan, document))
  }

  #limitOf(stage: AnyBatchStage): RateLimit {
    const known = this.#limits.get(stage)
    if (known) return known
    const limit = new RateLimit(stage.rate ?? {}, this.#clock)
    this.#limits.set(stage, limit)
    return limit
  }

  // A listener that throws must not end the run.
  #tell(): void {
    try {
      this.#settings.onProgress?.(this.#tally.progress())
    } catch {}
  }
}

/** The thread of a document. */
function threadOf({ name }: Pick<PipelinePlan, 'name'>, document: string): ThreadIdInput {
  return { pipeline: name, document }
}

function errorOf(outcome: Outcome<unknown, unknown>): RecordedError {
  if (outcome.status === 'failed') return outcome.error
  if (outcome.status === 'incompatible') return { name: 'IncompatibleError', message: outcome.reason }
  if (outcome.status === 'paused') {
    return { name: 'PausedError', message: 'The document waits for a person: an effect has an unknown outcome.' }
  }
  return { name: 'Error', message: `The run ended as ${outcome.status}.` }
}

function failureOf(outcome: Outcome<unknown, unknown>): Error {
  const { name, message } = errorOf(outcome)
  return Object.assign(new Error(`The sink could not be set up: ${message}`), { name })
}

// One that was never begun has nothing to cancel.
function ignoreMissing(error: unknown): void {
  if (!isHoldfastError(error, 'not-found')) throw error
}
