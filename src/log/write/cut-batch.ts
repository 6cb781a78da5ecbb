import type { Append, AppendResult } from '../contract.js'

/** A batch stops growing here, so that one flood of large bodies does not become one giant transaction. */
const MAX_BATCH_BYTES = 8 * 1024 * 1024

/** An append that waits to be sent. */
export interface Waiting {
  readonly append: Append
  /** Sent by itself: it was part of a batch that failed, and may be the cause. */
  readonly alone: boolean
  resolve(result: AppendResult): void
  reject(error: unknown): void
}

/**
 * Takes the next batch from those who wait. At most one append per log: the second of two handles on one log waits for
 * the next batch.
 */
export function cutBatch(waiting: Waiting[], most: number): Waiting[] {
  if (waiting.length === 1 || waiting[0]?.alone) return waiting.splice(0, 1)
  const batch: Waiting[] = []
  const logs = new Set<string>()
  let left = 0
  let bytes = 0
  for (const member of waiting) {
    const { tenant, thread, branch } = member.append.log
    const name = `${tenant}\n${thread}\n${branch}`
    for (const entry of member.append.entries) bytes += entry.body.length + entry.header.length
    const fits = batch.length < most && (batch.length === 0 || bytes <= MAX_BATCH_BYTES)
    if (!fits || member.alone || logs.has(name)) {
      waiting[left++] = member
    } else {
      logs.add(name)
      batch.push(member)
    }
  }
  waiting.length = left
  return batch
}
