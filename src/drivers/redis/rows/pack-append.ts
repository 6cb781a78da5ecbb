import type { Append, LeaseChange } from '../../../log/contract.js'
import { encodeCore, encodeHead, encodeIndexRow, encodeLabels, entryFields, escapeControls } from './rows.js'

const LEASES = { keep: 0, claim: 1, extend: 3, release: 4 } as const
const FORCED_CLAIM = 2

/** Ten numbers of four bytes and one of eight. */
const START_LENGTH = 10 * 4 + 8

/**
 * One append to an existing log as arguments of append.lua: a control value, and the values of its entries' fields. Each
 * argument costs the client about as much as a small command, so what is small travels in one. `required` is the place of
 * the required log among the script's keys, 0 for none; `generation` is that of the bucket. The control value:
 *
 *   lengths of expect and head | lease | its ms | lengths of owner and labels | required | length of its incarnation |
 *   length of the field names | number of fields | generation || expect | head | owner | labels | field names | incarnation
 */
export function packAppend(append: Append, required: number, generation: number): Buffer[] {
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
  const fields = names.join(' ')

  const text = before + after + owner + labels + fields + incarnation
  const control = Buffer.allocUnsafe(START_LENGTH + Buffer.byteLength(text))
  let at = control.writeUInt32BE(Buffer.byteLength(before), 0)
  at = control.writeUInt32BE(Buffer.byteLength(after), at)
  at = control.writeUInt32BE(leaseCode(lease), at)
  at = control.writeDoubleBE('ms' in lease ? lease.ms : 0, at)
  at = control.writeUInt32BE(Buffer.byteLength(owner), at)
  at = control.writeUInt32BE(Buffer.byteLength(labels), at)
  at = control.writeUInt32BE(required, at)
  at = control.writeUInt32BE(Buffer.byteLength(incarnation), at)
  at = control.writeUInt32BE(fields.length, at)
  at = control.writeUInt32BE(values.length, at)
  at = control.writeUInt32BE(generation, at)
  control.write(text, at)
  return [control, ...values]
}

function leaseCode(lease: LeaseChange): number {
  return lease.kind === 'claim' && lease.force ? FORCED_CLAIM : LEASES[lease.kind]
}
