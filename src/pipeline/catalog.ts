import { hash as digestOf } from 'node:crypto'
import { InvalidProgramError } from '../core/errors.js'
import type { Log } from '../log/log.js'
import { type Op, set, type State } from '../log/entry/ops.js'
import type { RecordedError } from '../runtime/errors.js'
import { isCompatible } from '../runtime/upgrade/migration.js'
import type { PipelinePlan } from './pipeline.js'

/** What is recorded about a document. */
export interface DocumentRecord {
  readonly status: 'done' | 'failed' | 'removed'
  readonly hash: string
  /** The version of the pipeline that processed it. */
  readonly version: string
  readonly chunks: number
  readonly tokens: number
  /** How often it was finished or removed: content that comes back after another is new work, not a repetition. */
  readonly generation: number
  readonly error?: RecordedError
}

/** Whether the pipeline may continue, as people decided. */
export interface Control {
  readonly status: 'running' | 'paused' | 'cancelled'
  readonly by?: string
}

interface CatalogState {
  readonly stages?: readonly string[]
  readonly version?: string
  readonly control?: Control
  /** By the first two digits of the hash of their ids: noting one document copies one small group, not all of them. */
  readonly documents?: Readonly<Record<string, Readonly<Record<string, DocumentRecord>>>>
}

/** Results wait until there are this many; a crash costs a look at each of their threads, and no work. */
const FLUSH_AT = 50

/**
 * The pipeline's own thread: the outcome of each document, so that resuming reads one log and not thousands. Any number
 * of processes write to it. It holds nothing that the threads of the documents don't: those are authoritative.
 */
export class Catalog {
  readonly #log: Log
  readonly #plan: PipelinePlan
  readonly #waiting = new Map<string, DocumentRecord>()
  #flushing: Promise<void> = Promise.resolve()

  constructor(log: Log, plan: PipelinePlan) {
    this.#log = log
    this.#plan = plan
  }

  /** Refuses a pipeline whose stages changed under the same version: half of the results would be mixed up. */
  async begin(): Promise<void> {
    const { name, version, split, stages } = this.#plan
    const names = [split.name, ...stages.map((stage) => stage.name)]
    await this.#log.update((fold) => {
      const state = fold.state as CatalogState
      const isSame = state.stages?.join('\n') === names.join('\n')
      if (state.version === version && isSame) return undefined
      if (state.version === version) {
        throw new InvalidProgramError(
          `Pipeline "${name}" ${version} has the stages ${quote(names)}, but was started with ${quote(state.stages ?? [])}.`,
          'stages',
          'Raise the version: a new major processes all documents again, a minor one keeps what is done.',
        )
      }
      return [
        {
          kind: 'pipeline',
          ops: [set('stages', names), set('version', version)],
          index: { status: 'active', metadata: { [LABEL]: name } },
        },
      ]
    })
  }

  get control(): Control {
    return this.#state.control ?? { status: 'running' }
  }

  async setControl(control: Control): Promise<void> {
    const index = { status: control.status === 'running' ? 'active' : control.status }
    await this.#log.update(() => [{ kind: 'pipeline', ops: [set('control', control)], index }])
  }

  /** What is recorded about a document, if it is still valid under this version. */
  find(id: string): DocumentRecord | undefined {
    const record = this.#recordOf(id)
    return record && record.status !== 'removed' && isCompatible(record.version, this.#plan) ? record : undefined
  }

  generationOf(id: string): number {
    return this.#recordOf(id)?.generation ?? 0
  }

  /** Every recorded document, including those of other versions, except for removed ones. */
  *all(): Generator<readonly [id: string, record: DocumentRecord & { readonly status: 'done' | 'failed' }]> {
    for (const group of Object.values(this.#state.documents ?? {})) {
      for (const [id, record] of Object.entries(group)) {
        if (record.status !== 'removed') yield [id, record as DocumentRecord & { readonly status: 'done' | 'failed' }]
      }
    }
  }

  /** Notes the outcome of a document. Written together with others, or by `flush`. */
  async note(id: string, record: DocumentRecord): Promise<void> {
    this.#waiting.set(id, record)
    if (this.#waiting.size >= FLUSH_AT) await this.flush()
  }

  /** Writes what is waiting. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.catch(() => {}).then(() => this.#write())
    return this.#flushing
  }

  /** Reads what other processes noted. */
  async refresh(): Promise<void> {
    await this.#log.refresh()
  }

  async #write(): Promise<void> {
    const taken = new Map(this.#waiting)
    if (taken.size === 0) return
    const ops = [...taken].map(([id, record]): Op => set(['documents', groupOf(id), id], record))
    await this.#log.update(() => [{ kind: 'pipeline', ops }])
    // Only now: until it is written, `find` must not miss it.
    for (const [id, record] of taken) if (this.#waiting.get(id) === record) this.#waiting.delete(id)
  }

  #recordOf(id: string): DocumentRecord | undefined {
    const waiting = this.#waiting.get(id)
    if (waiting !== undefined) return waiting
    const group = this.#state.documents?.[groupOf(id)]
    return group && Object.hasOwn(group, id) ? group[id] : undefined
  }

  get #state(): CatalogState {
    return this.#log.fold.state as State as CatalogState
  }
}

/** The label by which the threads of pipelines are listed. */
const LABEL = 'holdfast.pipeline'

function groupOf(id: string): string {
  return digestOf('sha256', id).slice(0, 2)
}

function quote(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ')
}
