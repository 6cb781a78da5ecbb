import type * as Bullmq from 'bullmq'
import { MissingDependencyError } from '../../errors.js'

export type BullmqModule = typeof Bullmq

/** Loaded when a queue is opened: users who don't use BullMQ need not install it. */
export async function loadBullmq(): Promise<BullmqModule> {
  try {
    return await import('bullmq')
  } catch (cause) {
    if ((cause as { readonly code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new MissingDependencyError('bullmq', 'npm install bullmq', { what: 'The engine of holdfast/bullmq', cause })
  }
}
