import type { JobsOptions } from 'bullmq'
import type { ThreadIdInput } from '../../index.js'
import type { DueThread } from '../../types.js'

/** What a job of the queue holds: a hint that a thread is due, or input to start one with. */
export type HoldfastJob = DueHint | StartInput

/** A thread was due when the job was added. The job says only which thread; what the thread holds stays in the store. */
export type DueHint = Pick<DueThread, 'tenant' | 'thread' | 'branch'>

/** Input for a thread, brought by a job: from a BullMQ scheduler, or a service that knows nothing about Holdfast. */
export interface StartInput {
  readonly start: {
    /** By name. */
    readonly program: string
    readonly input?: unknown
    /** Default: named after the job, so that each occurrence of a scheduler has a thread of its own. */
    readonly thread?: ThreadIdInput
    readonly tenant?: string
  }
}

/** Finished jobs are kept for a while for people who look at a dashboard; nothing else needs them. */
const KEPT = {
  removeOnComplete: { age: 3600, count: 1000 },
  removeOnFail: { age: 24 * 3600, count: 1000 },
} as const

export interface HintJob {
  readonly name: string
  readonly data: DueHint
  readonly opts: JobsOptions
}

/** The job of a due thread. While one waits for the same thread, BullMQ adds no second one. */
export function hintJob({ program, tenant, thread, branch }: DueThread, options: JobsOptions = {}): HintJob {
  const data = { tenant, thread, branch }
  return { name: program, data, opts: { ...KEPT, ...options, deduplication: { id: hintId(data) } } }
}

function hintId({ tenant, thread, branch }: DueHint): string {
  const parts = typeof thread === 'string' ? thread : Object.entries(thread).sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([tenant, parts, branch])
}

/** A job that starts a thread of a program: add it to the queue, or pass it to one of its schedulers. */
export function startJob(
  program: string | { readonly plan: { readonly name: string } },
  input?: unknown,
  options: { readonly thread?: ThreadIdInput; readonly tenant?: string } = {},
): { readonly name: string; readonly data: StartInput } {
  const name = typeof program === 'string' ? program : program.plan.name
  return { name, data: { start: { program: name, ...(input === undefined ? {} : { input }), ...options } } }
}

export function isStart(data: HoldfastJob): data is StartInput {
  return 'start' in data
}
