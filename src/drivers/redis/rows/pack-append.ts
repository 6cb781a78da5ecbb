import type { Append, LeaseChange } from '../../../log/contract.js'
import { encodeCore, encodeHead, encodeIndexRow, encodeLabels, entryFields, escapeControls } from './rows.js'

const LEASES = { keep: 0, claim: 1, extend: 3, release: 4 } as const
const FORCED_CLAIM = 2

/** A number of eight bytes and ten of four. */
const START_LENGTH = 8 + 10 * 4

/** An append to an existing log, before it is packed together with others. */
export interface AppendDraft {
  readonly ms: number
  readonly numbers: readonly number[]
  readonly text: string
  /** What stands before the values in the pack. */
  readonly length: number
  /** The values of its entries' fields. */
  readonly values: readonly Buffer[]
}

/** `required` is the place of the required log among the script's keys, 0 for none; `generation` is that of the bucket. */
export function draftAppend(append: Append, required: number, generation: number): AppendDraft {
  const { expect, entries, lease, index } = append
  const last = entries[entries.length - 1] as Append['entries'][number]
  const row = encodeIndexRow(index)
  const core = { seq: last.seq, hash: last.hash, epoch: append.epoch, incarnation: append.incarnation }
  const before = `${row}\n${expect === null ? '' : encodeCore(expect)}\n`
  const after = encodeHead(row, core, index)
  const owner = lease.kind === 'claim' ? lease.owner : ''
  const labels = append.labelsChanged ? encodeLabels(index) : ''
  const incarnation = required === 0 ? '' : escapeControls(append.requires?.incarnation ?? '')
  const names: string[] = []
  const values: Buffer[] = []
  for (const entry of entries) {
    const [meta, metaValue, body, bodyValue] = entryFields(entry)
    names.push(meta)
    values.push(metaValue)
    if (body === undefined || bodyValue === undefined) continue
    names.push(body)
    values.push(bodyValue)
  }
  const text = before + after + owner + labels + incarnation + names.join(' ')
  const bytes = Buffer.byteLength(text)
  // Measured once and not part by part where every character is a byte, as nearly always.
  const lengthOf = bytes === text.length ? (part: string) => part.length : Buffer.byteLength
  const length = START_LENGTH + bytes
  const numbers = [
    length,
    lengthOf(before),
    lengthOf(after),
    lengthOf(owner),
    lengthOf(labels),
    lengthOf(incarnation),
    leaseCode(lease),
    required,
    generation,
    values.length,
  ]
  return { ms: 'ms' in lease ? lease.ms : 0, numbers, text, length, values }
}

/**
 * Appends to existing logs as arguments of append.lua: a pack of all of them, and the values of their entries' fields.
 * Each argument costs the client about as much as a small command, so what is small travels in one; the values don't,
 * because Lua would read every byte of them once more to take them out. An append in the pack:
 *
 *   ms of the lease | length of all this | lengths of expect, head, owner, labels and incarnation | lease | place of the
 *   required log | generation | number of fields || expect | head | owner | labels | its incarnation | names of the fields
 */
export function packAppends(drafts: readonly AppendDraft[]): Buffer[] {
  const pack = Buffer.allocUnsafe(drafts.reduce((sum, { length }) => sum + length, 0))
  const args: Buffer[] = [pack]
  let at = 0
  for (const { ms, numbers, text, values } of drafts) {
    at = pack.writeDoubleBE(ms, at)
    for (const number of numbers) at = pack.writeUInt32BE(number, at)
    at += pack.write(text, at)
    args.push(...values)
  }
  return args
}

function leaseCode(lease: LeaseChange): number {
  return lease.kind === 'claim' && lease.force ? FORCED_CLAIM : LEASES[lease.kind]
}
