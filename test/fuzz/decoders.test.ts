import { createHash } from 'node:crypto'
import { AIMessage, HumanMessage } from '@langchain/core/messages'
import fc from 'fast-check'
import { isHoldfastError } from 'holdfast'
import { ops } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { decode as decodeGraphValue } from '#src/adapters/langgraph/values/decode.js'
import { encode as encodeGraphValue } from '#src/adapters/langgraph/values/encode.js'
import { decodeBlob, encodeBlob } from '#src/codec/blob.js'
import { pack, unpack } from '#src/codec/pack/compress.js'
import { decrypt, deriveDataKey, encrypt } from '#src/codec/secret/data-key.js'
import { decodeValue } from '#src/codec/decode/decode.js'
import { decodeHeader, type EntryHeader, encodeHeader } from '#src/codec/header.js'
import { encodeItem, verifyItem } from '#src/codec/item.js'
import { DEFAULT_LIMITS } from '#src/codec/limits.js'
import { encodeValue, type Value } from '#src/codec/value.js'
import { describeStoreUrl } from '#src/core/wording/secrets.js'
import { parseBranchId, parseTenantId, parseThreadId } from '#src/core/ids.js'
import { parseItem } from '#src/drivers/file/items/item-record.js'
import { encodeRecord, parseEntries } from '#src/drivers/file/records/record.js'
import {
  decodeEntries,
  decodeHead,
  encodeHead,
  encodeIndexRow,
  encodeLabels,
  entryFields,
} from '#src/drivers/redis/rows/rows.js'
import { encodeCursor, parseCursor } from '#src/drivers/shared/cursor.js'
import { isAnchor } from '#src/log/anchors/anchors.js'
import { formatCheckpointId, parseCheckpointId } from '#src/log/entry/checkpoint-id.js'
import { readBody } from '#src/log/entry/entry-body.js'
import { decodeCursor, encodeCursor as encodeItemCursor } from '#src/store/search/cursor.js'
import { parseFilter } from '#src/store/search/filter.js'
import { parseStoreUrl } from '#src/store-url.js'
import { randomly, rounds } from '../support/scale.js'
import { misshapen, mutated } from './mutations.js'

const { set } = ops

// Whatever a decoder is given, it returns something or throws an error with a name. Nothing else is thrown, nothing is
// constructed that the code does not name, and no prototype changes.

const NAMED = ['corrupt', 'invalid-value', 'invalid-option', 'invalid-id', 'too-large', 'schema-too-new', 'missing-key']
const LIMITS = { ...DEFAULT_LIMITS, maxBytes: 1 << 20 }
const KEY = deriveDataKey('k', Buffer.alloc(32, 7))
const LOG = { tenant: parseTenantId('t'), thread: parseThreadId('a'), branch: parseBranchId('main') }
const HASH = 'a'.repeat(64)
const VALUE: Value = {
  text: 'hello',
  when: new Date(0),
  big: 2n ** 70n,
  bytes: new Uint8Array([1, 2]),
  odd: [-0, Number.NaN],
}
const HEADER: EntryHeader = {
  seq: 3,
  epoch: 1,
  kind: 'step',
  appendId: 'x',
  at: 1,
  keyframe: 3,
  packing: 'plain',
  size: 10,
  parent: HASH,
  base: null,
  key: 'k',
  encrypted: true,
  blobs: [HASH],
}
const BODY: Value = {
  ops: [set('a', 1)] as never,
  index: { status: 'x', tags: { a: 1 }, metadata: { m: 1 }, wakeAt: 1 },
  data: { note: 1 },
  store: [['put', 's', 'k', { v: 1 }, null]] as never,
  fold: {
    state: { a: 1 },
    index: { status: '', createdAt: 0, expiresAt: null, wakeAt: null, metadata: {}, tags: {} },
    stored: 1,
  },
}

interface Target {
  readonly name: string
  readonly inputs: fc.Arbitrary<unknown>
  readonly decode: (input: never) => unknown
}

function bytes(name: string, seeds: readonly Uint8Array[], decode: (input: Buffer) => unknown): Target {
  return { name, inputs: mutated(seeds), decode: decode as never }
}

function text(name: string, seeds: readonly string[], decode: (input: string) => unknown): Target {
  const inputs = fc.oneof(
    mutated(seeds.map((seed) => Buffer.from(seed))).map((one) => one.toString('utf8')),
    fc.string({ unit: 'binary', maxLength: 80 }),
  )
  return { name, inputs, decode: decode as never }
}

function shape(name: string, seeds: readonly unknown[], decode: (input: never) => unknown): Target {
  return { name, inputs: misshapen(seeds), decode }
}

const json = (value: Value) => Buffer.from(encodeValue(value, LIMITS).json)
const place = { tenant: 't', space: 's', key: 'k' }
const facts = { version: 'v', at: 1 }
const blob = await encodeBlob(Buffer.from('content '.repeat(400)), null, false)
const sealedBlob = await encodeBlob(Buffer.from('content '.repeat(400)), KEY, true)
const item = await encodeItem(
  place,
  facts,
  { json: encodeValue(VALUE, LIMITS).json, vector: new Float32Array(3) },
  null,
  false,
)
const sealedItem = await encodeItem(place, facts, { json: encodeValue(VALUE, LIMITS).json }, KEY, true)
const packed = await pack(Buffer.from('word '.repeat(1000)))
const index = {
  status: 'x',
  createdAt: 1,
  updatedAt: 2,
  expiresAt: null,
  wakeAt: 3,
  tags: ['t'],
  metadata: { a: 'b' },
  origin: null,
}
const core = { seq: 1, hash: HASH, epoch: 1, incarnation: 'i' }
const entry = { seq: 1, keyframe: 0, hash: HASH, header: encodeHeader(HEADER), body: Buffer.from('body') }
const record = {
  kind: 'append',
  log: LOG,
  row: { seq: 1 },
  entries: [{ seq: 1, keyframe: 0, hash: HASH, header: entry.header.length, body: entry.body.length }],
}
const graphValue = encodeGraphValue(
  {
    messages: [
      new HumanMessage('a'),
      new AIMessage({ content: 'b', tool_calls: [{ name: 't', args: { a: 1 }, id: 'c' }] }),
    ],
    map: new Map([[1, new Set(['x'])]]),
    error: new RangeError('e'),
    pattern: /a+/gi,
    array: new Float32Array(2),
    none: undefined,
  },
  [],
)

const TARGETS: readonly Target[] = [
  bytes('a value', [json(VALUE), json({ ['__proto__']: 1, nested: [[[{ a: 1 }]]] })], (input) =>
    decodeValue(input, LIMITS),
  ),
  bytes(
    'the header of an entry',
    [encodeHeader(HEADER), encodeHeader({ ...HEADER, key: null, encrypted: false })],
    decodeHeader,
  ),
  shape('the body of an entry', [BODY], (input) => readBody(input as never, { ...HEADER, seq: 3, keyframe: 3 })),
  bytes('a packed body', [packed.bytes], (input) => unpack('br', input, 5000)),
  bytes('an encrypted body', [encrypt(KEY.encryptionKey, Buffer.from('x'.repeat(50)), Buffer.from('c'))], (input) =>
    decrypt(KEY.encryptionKey, input, Buffer.from('c')),
  ),
  bytes('a blob', [blob.bytes, sealedBlob.bytes], (input) =>
    decodeBlob(
      createHash('sha256').update(input).digest('hex'),
      input,
      { maxBytes: 1 << 20, left: 1 << 20 },
      async () => KEY,
    ),
  ),
  bytes('an item', [item, sealedItem], async (input) => {
    const keyOf = (id: string | null) => (id === null ? null : KEY)
    return (await verifyItem(place, facts, resealed(input), LIMITS, keyOf)).read()
  }),
  bytes('a record of a file store', [encodeRecord(record as never, [entry]).bytes], (input) =>
    parseEntries('file', input),
  ),
  shape('a record of a file store whose sum is right', [record], (input) =>
    parseEntries('file', encodeRecord((input ?? {}) as never, [entry]).bytes),
  ),
  bytes('an item of a file store', [encodeRecord({ kind: 'item', item: null } as never, []).bytes], (input) =>
    parseItem('file', input),
  ),
  text('the head of a log in Redis', [encodeHead(encodeIndexRow(index), core, index)], (input) =>
    decodeHead(LOG, ['1', `${input}0`, `0 ${HASH}`, 'w', encodeLabels(index), '1']),
  ),
  text('the labels of a log in Redis', [encodeLabels(index)], (input) =>
    decodeHead(LOG, ['1', `${encodeHead(encodeIndexRow(index), core, index)}0`, `0 ${HASH}`, 'w', input, null]),
  ),
  bytes('an entry in Redis', [entryFields(entry)[1]], (input) => decodeEntries(LOG, 1, [input, null])),
  text('a cursor of the thread index', [encodeCursor({ value: 1, log: LOG })], parseCursor),
  text(
    'a cursor of items',
    [encodeItemCursor({ field: undefined, descending: false }, { key: 'k', value: 1 })],
    (input) => decodeCursor({ field: undefined, descending: false }, input),
  ),
  text('a checkpoint id', [formatCheckpointId(LOG.branch, 3, HASH)], parseCheckpointId),
  text('a thread id', ['{user=a,session=b}', 'plain'], parseThreadId),
  shape('a structured thread id', [{ user: 'a', session: 'b' }, 'x'], parseThreadId),
  shape(
    'a filter of items',
    [{ city: 'x', age: { gte: 1, lt: 5 } }, [{ field: ['a', 'b'], in: [1, 'x'] }]],
    parseFilter,
  ),
  text(
    "a store's url",
    ['sqlite:a.db?synchronous=full', 'postgres://u:p@h/d?schema=s', 'redis://h:1,redis://g:2'],
    parseStoreUrl,
  ),
  text("a store's url, for messages", ['postgres://u:p@h/d?x=y', 'redis://h:1'], describeStoreUrl),
  shape(
    'an anchor',
    [
      { log: ['t', 'a', 'main'], incarnation: 'i', seq: 1, hash: HASH },
      { item: ['t', 's', 'k'], version: null, at: 1 },
    ],
    isAnchor,
  ),
  shape('a value of LangGraph', [graphValue], (input) => decodeGraphValue((input ?? null) as never)),
]

/** With a hash that fits what it is over, where there is no key: anybody can make that. */
function resealed(input: Buffer): Buffer {
  if (input.length < 33) return input
  const identity = `holdfast/1 item\n${JSON.stringify(['t', 's', 'k'])}\n`
  const hash = createHash('sha256').update(identity).update(input.subarray(32)).digest()
  return input.includes('"key"') ? input : Buffer.concat([hash, input.subarray(32)])
}

describe('a decoder that is given anything at all', () => {
  it.each(TARGETS)('returns or throws by name: $name', async ({ inputs, decode }) => {
    const before = Object.getOwnPropertyNames(Object.prototype).length
    await fc.assert(
      fc.asyncProperty(inputs, async (input) => {
        try {
          await decode(input as never)
        } catch (error) {
          if (!isHoldfastError(error) || !NAMED.includes(error.code)) throw error
        }
      }),
      randomly(rounds(300, 50_000)),
    )
    expect(Object.getOwnPropertyNames(Object.prototype)).toHaveLength(before)
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })
})
