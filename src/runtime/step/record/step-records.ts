import type { Value } from '../../../codec/value.js'
import { ownValue } from '../../../codec/wide-record.js'
import { type Path, set } from '../../../log/entry/ops.js'
import { EffectUnknownError, nondeterministic, recordError, StepFailedError } from '../../errors.js'
import { isFailed, retryStep } from './failed-steps.js'
import { keyMaker } from './hash-value.js'
import { recordAt } from '../attempt/ledger.js'
import type { Work } from '../work.js'
import { inScope, type Prefix, scopeAt, joinPath } from '../../run/state/read-run-state.js'
import { ANY_INPUT, type StepRecord } from '../../run/state/run-state.js'
import type { Run } from '../../run/run.js'
import { createHash } from 'node:crypto'
import { InvalidProgramError } from '../../../core/errors.js'

/** The records of an activation's steps: how they are found again, and how they are created. */
export class StepRecords {
  readonly #run: Run
  readonly #prefix: Prefix
  readonly #scopePath: string

  /** @param scopePath where the scope of the records is in the thread, for people. */
  constructor(run: Run, prefix: Prefix, scopePath: string) {
    this.#run = run
    this.#prefix = prefix
    this.#scopePath = scopePath
  }

  /** All records of the scope, as they are now. */
  get all(): Readonly<Record<string, StepRecord>> {
    return scopeAt(this.#run.state, this.#prefix).steps ?? {}
  }

  /** The record of a step. One may be named `toString`: only what was recorded counts, not what every object has. */
  get(path: string): StepRecord | undefined {
    return ownValue(this.all as never, path) as StepRecord | undefined
  }

  at(path: string): Path {
    return inScope(this.#prefix, 'steps', path)
  }

  /** A step's path in the whole thread. */
  name(path: string): string {
    return joinPath(this.#scopePath, path)
  }

  /**
   * A finished record, or one that waits; throws what the step threw.
   * @param ownKey the idempotency key that the step brings itself.
   */
  find(path: string, inputHash: string, ownKey?: string): StepRecord | undefined {
    const record = this.get(path)
    if (record === undefined || record.status === 'retry') return undefined
    if (record.status === 'started' && !record.unknown) return undefined
    const { input = 'none' } = record
    if (record.status !== 'waiting' && input !== inputHash && input !== ANY_INPUT) {
      throw nondeterministic(`Step "${path}" was recorded with another input than it has now.`, path)
    }
    if (record.unknown) throw this.#unknownAgain(path, record, ownKey)
    if (record.status === 'failed') {
      const error = record.error ?? { name: 'Error', message: 'no reason recorded' }
      throw new StepFailedError(this.name(path), this.at(path), error)
    }
    return record
  }

  /** Whether a step failed, and it is in doubt whether the program continued from that. */
  isDoubted(path: string): boolean {
    const record = this.get(path)
    return record?.doubted === true && isFailed(record)
  }

  /** Lets a step that failed before be retried. */
  retry(path: string): void {
    const { log, state, takes } = this.#run
    log.add({ kind: 'step', ops: [retryStep(state, this.at(path), takes)] })
  }

  /** The program may catch what a step threw and continue; when it gets there again, it must be thrown again. */
  async threw(work: Work, error: unknown): Promise<void> {
    if (error instanceof StepFailedError) await this.#failed(work, error)
    if (error instanceof EffectUnknownError) await this.#unknown(work)
  }

  async #failed(work: Work, error: StepFailedError): Promise<void> {
    const record: StepRecord = {
      status: 'failed',
      input: work.inputHash(),
      error: error.recorded,
      ...(work.after === undefined ? {} : { after: work.after() }),
    }
    const generation = recordAt(this.#run, work)?.generation
    await this.#run.record({
      kind: 'step',
      ops: [set(work.at, { ...record, ...(generation === undefined ? {} : { generation }) })],
      data: { events: [{ type: 'step', step: work.path, status: 'failed', error: recordError(error) }] },
    })
  }

  // Stays begun: whoever resumes a run that failed of it must find out what happened.
  async #unknown(work: Work): Promise<void> {
    const record = recordAt(this.#run, work)
    if (record?.status !== 'started' || !this.#run.log.durable) return
    await this.#run.record({ kind: 'step', ops: [set(work.at, { ...record, unknown: true })] })
  }

  #unknownAgain(
    path: string,
    { effect, error, key, generation = 0 }: StepRecord,
    ownKey: string | undefined,
  ): EffectUnknownError {
    const name = this.name(path)
    const idempotencyKey = key ?? ownKey ?? keyMaker(this.#run, name, generation)()
    return new EffectUnknownError(name, this.at(path), { effect, idempotencyKey, error: error?.message ?? null })
  }
}

/** The record of a step that returned. */
export function doneRecord({ inputHash, after, policy }: Work, result: Value | undefined): StepRecord {
  const { effect = 'read' } = policy
  const input = inputHash()
  return {
    status: 'done',
    ...(input === 'none' ? {} : { input }),
    ...(effect === 'read' ? {} : { effect }),
    ...(after === undefined ? {} : { after: after() }),
    ...(result === undefined ? {} : { result }),
  }
}

const MAX_ENCODED = 500

/** A key as it is part of a path. */
export interface EncodedKey {
  readonly text: string
  /** Where version 0.1 cut it off, if it is longer than that. */
  readonly cut?: string
}

/** A key in characters that have no other meaning in a path. A long one is distinguished by its hash. */
export function encodeKey(key: unknown): EncodedKey {
  if (Number.isSafeInteger(key)) return { text: String(key) }
  const text = typeof key === 'number' ? String(key) : key
  if (typeof text !== 'string' || !text.isWellFormed()) {
    const given =
      typeof key === 'string' ? 'text with half a surrogate pair' : `a ${key === null ? 'null' : typeof key}`
    throw new InvalidProgramError(`A key must be text or a number, not ${given}.`, 'key', 'Pass an id or a position.')
  }
  const encoded = encodeURIComponent(text)
  if (encoded.length <= MAX_ENCODED) return { text: encoded }
  const cut = encoded.slice(0, MAX_ENCODED)
  const hash = createHash('sha256').update(text).digest('base64url')
  // Encoded text holds no #, so no other key can look like this.
  return { text: `${cut}#${hash}`, cut }
}
