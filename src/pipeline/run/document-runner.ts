import type { Clock } from '../../core/time/clock.js'
import { isHoldfastError } from '../../core/errors.js'
import { recordError, type RecordedError } from '../../runtime/errors.js'
import type { FlowProgram } from '../../runtime/program/flow.js'
import type { Outcome } from '../../runtime/run/state/outcome.js'
import { parseRetry, retryDelayMs } from '../../runtime/step/attempt/attempt.js'
import type { Catalog } from '../catalog.js'
import { type Document, loadDocument, type LoadedDocument } from '../document.js'
import type { PipelineHost, PipelineRunOptions } from '../open-pipeline.js'
import type { PipelinePlan } from '../pipeline.js'
import { RateLimit } from '../rate.js'
import type { Tally } from '../report.js'
import type { AnyBatchStage } from '../stage.js'
import { documentFlow, STALE } from './document-flow.js'
import type { DocumentInput, DocumentResult, DocumentWork } from './document-work.js'
import { Slots } from './slots.js'

/** What the documents of one run share. */
export interface SharedByDocuments {
  readonly host: PipelineHost
  readonly plan: PipelinePlan
  readonly catalog: Catalog
  readonly clock: Clock
  readonly tally: Tally
  readonly settings: Pick<PipelineRunOptions, 'leaseMs' | 'onProgress' | 'retryFailed'>
  /** Aborted when the run ends early. */
  readonly stopping: AbortSignal
}

/** Brings single documents to their ends, each by a run of its own thread, and counts and notes what became of them. */
export class DocumentRunner {
  /** Documents that another process is working on. */
  readonly held = new Set<string>()
  readonly #host: PipelineHost
  readonly #plan: PipelinePlan
  readonly #catalog: Catalog
  readonly #clock: Clock
  readonly #tally: Tally
  readonly #settings: SharedByDocuments['settings']
  readonly #stopping: AbortSignal
  readonly #flow: FlowProgram<DocumentInput, DocumentResult>
  readonly #limits = new Map<AnyBatchStage, RateLimit>()
  readonly #slots: Slots

  constructor({ host, plan, catalog, clock, tally, settings, stopping }: SharedByDocuments) {
    this.#host = host
    this.#plan = plan
    this.#catalog = catalog
    this.#clock = clock
    this.#tally = tally
    this.#settings = settings
    this.#stopping = stopping
    this.#flow = documentFlow(plan)
    this.#slots = new Slots(plan.concurrency)
  }

  /** Whether what is recorded for a document with this content is enough. */
  isSettled(id: string, hash: string): boolean {
    const record = this.#catalog.find(id)
    if (record === undefined || record.hash !== hash) return false
    if (record.status === 'done') {
      if (this.held.delete(id)) this.#tally.elsewhere++
      else this.#tally.skipped++
    } else {
      if (this.#settings.retryFailed) return false
      if (record.error) this.#tally.failures.set(id, record.error)
    }
    this.tell()
    return true
  }

  /** Loads a document and processes it, unless what is recorded is enough. */
  async take(document: Document): Promise<void> {
    this.#tally.active++
    try {
      const loaded = await this.#load(document)
      if (loaded && !this.isSettled(document.id, loaded.hash)) await this.#process(loaded)
    } catch (error) {
      if (!this.#stopping.aborted) throw error
    } finally {
      this.#tally.active--
      this.tell()
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
        await this.#clock.sleep(retryDelayMs(backoff, tried, Math.random), this.#stopping)
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
        if (isLastTry) return void this.held.add(document.id)
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
      if (outcome.status === 'busy') return void this.held.add(document.id)
      // Not recorded as failed: the next run sees whether somebody answered.
      if (outcome.status === 'paused') return this.fail(document.id, errorOf(outcome))
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
        this.tell()
      },
    }
    try {
      const outcome = await this.#thread(document.id).run({
        input,
        key: `${version} ${generation} ${document.hash}`,
        context,
        signal: this.#stopping,
        ...(leaseMs === undefined ? {} : { leaseMs }),
      })
      return { outcome, isOurs }
    } catch (error) {
      if (this.#stopping.aborted) return { isOurs }
      if (isHoldfastError(error, 'missing-context')) return { isOurs, isBehind: true }
      // Taken over by another process, which counts its chunks.
      if (isHoldfastError(error, 'fenced')) {
        this.#tally.chunks -= counted
        this.held.add(document.id)
        return { isOurs }
      }
      throw error
    } finally {
      seat.leave()
    }
  }

  #count(id: string, { chunks, tokens, resumed }: DocumentResult, isOurs: boolean): void {
    const wasHeld = this.held.delete(id)
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

  /** Removes the rows of a document that is gone. */
  async remove(id: string): Promise<void> {
    const input: DocumentInput = { document: id, hash: '', remove: true }
    await this.#thread(id).cancel({ reason: 'the document is gone' }).catch(ignoreMissing)
    const outcome = await this.#thread(id).run({
      input,
      key: `remove ${crypto.randomUUID()}`,
      signal: this.#stopping,
    })
    if (outcome.status !== 'completed') return this.fail(id, errorOf(outcome))
    this.#tally.removed++
    const generation = this.#catalog.generationOf(id) + 1
    const { version } = this.#plan
    await this.#catalog.note(id, { status: 'removed', hash: '', version, chunks: 0, tokens: 0, generation })
  }

  async #failed(id: string, hash: string, error: RecordedError): Promise<void> {
    this.held.delete(id)
    this.fail(id, error)
    const { version } = this.#plan
    const generation = this.#catalog.generationOf(id)
    await this.#catalog.note(id, { status: 'failed', hash, version, chunks: 0, tokens: 0, generation, error })
  }

  /** Counts a failure, without recording it. */
  fail(id: string, error: RecordedError): void {
    this.#tally.failures.set(id, error)
    this.tell()
  }

  #thread(document: string) {
    return this.#host.thread(this.#flow, { pipeline: this.#plan.name, document })
  }

  #limitOf(stage: AnyBatchStage): RateLimit {
    const known = this.#limits.get(stage)
    if (known) return known
    const limit = new RateLimit(stage.rate ?? {}, this.#clock)
    this.#limits.set(stage, limit)
    return limit
  }

  // A listener that throws must not end the run.
  tell(): void {
    try {
      this.#settings.onProgress?.(this.#tally.progress())
    } catch {}
  }
}

/** What went wrong in a run that did not complete. */
export function errorOf(outcome: Outcome<unknown, unknown>): RecordedError {
  if (outcome.status === 'failed') return outcome.error
  if (outcome.status === 'incompatible') return { name: 'IncompatibleError', message: outcome.reason }
  if (outcome.status === 'paused') {
    return { name: 'PausedError', message: 'The document waits for a person: an effect has an unknown outcome.' }
  }
  return { name: 'Error', message: `The run ended as ${outcome.status}.` }
}

// One that was never begun has nothing to cancel.
function ignoreMissing(error: unknown): void {
  if (!isHoldfastError(error, 'not-found')) throw error
}
