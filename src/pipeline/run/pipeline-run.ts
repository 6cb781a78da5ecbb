import { setMaxListeners } from 'node:events'
import type { Clock } from '../../core/time/clock.js'
import { onAbort } from '../../core/async/on-abort.js'
import { recordError } from '../../runtime/errors.js'
import { flow } from '../../runtime/program/flow.js'
import { PROGRAM } from '../../runtime/run/state/labels.js'
import type { Outcome } from '../../runtime/run/state/outcome.js'
import type { Catalog } from '../catalog.js'
import { checkDocument, type Document } from '../document.js'
import type { PipelineHost, PipelineRunOptions } from '../open-pipeline.js'
import type { PipelinePlan } from '../pipeline.js'
import { MOST_NAMES, type PipelineReport, Tally } from '../report.js'
import { DocumentRunner, errorOf } from './document-runner.js'

interface Settings extends PipelineRunOptions {
  readonly isWanted: (id: string) => boolean
  /** Only some documents are requested: those not seen are not missing. */
  readonly isPartial: boolean
}

/** How often a process checks what others did, while it waits for documents that they hold. */
const LOOK_MS = 250
/** How many documents are started between two looks at what others did. */
const LOOK_EVERY = 32

/** One process's part of one run of a pipeline. */
export class PipelineRun {
  readonly #host: PipelineHost
  readonly #plan: PipelinePlan
  readonly #catalog: Catalog
  readonly #clock: Clock
  readonly #settings: Settings
  readonly #documents: DocumentRunner
  readonly #tally = new Tally()
  readonly #stop = new AbortController()
  #sinceLook = 0

  constructor(host: PipelineHost, plan: PipelinePlan, catalog: Catalog, clock: Clock, settings: Settings) {
    this.#host = host
    this.#plan = plan
    this.#catalog = catalog
    this.#clock = clock
    this.#settings = settings
    const { signal: stopping } = this.#stop
    setMaxListeners(0, stopping)
    this.#documents = new DocumentRunner({ host, plan, catalog, clock, settings, tally: this.#tally, stopping })
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
      if (removeMissing) for (const id of missing.splice(0)) await this.#documents.remove(id)
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
        const task: Promise<void> = this.#documents
          .take(document)
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
      if (counts)
        this.#documents.fail(typeof id === 'string' && id !== '' ? id.slice(0, 100) : '(no id)', recordError(error))
      return undefined
    }
  }

  /** Whether what is recorded is enough, without reading the document. */
  #skips({ id, hash }: Document): boolean {
    return hash !== undefined && this.#documents.isSettled(id, hash)
  }

  /** What others were working on: waits until it is done, or takes it over when they are gone. */
  async #takeHeld(): Promise<void> {
    const { held } = this.#documents
    while (held.size > 0 && this.#status === 'completed') {
      await this.#catalog.flush()
      await this.#clock.sleep(LOOK_MS, this.#stop.signal).catch(() => {})
      await this.#catalog.refresh()
      const left = new Set([...held].filter((id) => this.#catalog.find(id)?.status === undefined))
      for (const id of held) {
        if (left.has(id)) continue
        held.delete(id)
        this.#tally.elsewhere++
      }
      if (left.size > 0 && this.#status === 'completed') await this.#pass((id) => left.has(id), false)
      this.#documents.tell()
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
}

function failureOf(outcome: Outcome<unknown, unknown>): Error {
  const { name, message } = errorOf(outcome)
  return Object.assign(new Error(`The sink could not be set up: ${message}`), { name })
}
