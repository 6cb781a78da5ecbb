// Writes logs as version 4 of the stored format holds them into test/fixtures/format-v4, with what each entry must
// read as beside them. test/codec/fixtures.test.ts loads every file for ever, those of earlier versions as well.
//
// A fixture is never rewritten once it was released: data like it is out there, and today's code must read it. This
// script therefore leaves files alone that exist, and SHA256SUMS lets the test notice one that was changed. For a
// new shape of entry add a scenario; for a new format version change the folder. Times and ids are
// fixed, so that a scenario always gives the same file (but for keys and nonces, which are random).
//
//   node scripts/make-fixtures.mjs
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from './build.mjs'

const folder = join(dirname(fileURLToPath(import.meta.url)), '..', 'test', 'fixtures', 'format-v4')

if (!(await build())) process.exit(1)
const { parseBranchId, parseTenantId, parseThreadId } = await import('../dist/core/ids.js')
const { openMemory } = await import('../dist/drivers/memory/memory-driver.js')
const { LogStore } = await import('../dist/log/log-store.js')
const { push, remove, set, splice } = await import('../dist/log/entry/ops.js')
const { virtualClock } = await import('../dist/testing/virtual-clock.js')

const BLOB_THRESHOLD = 1024
const LONG_TEXT = 'A text that is long enough to be stored as a blob. '.repeat(30)
const WHOLE = {
  parts: Array.from({ length: 30 }, (_, i) => ({ i, at: new Date(i), text: `part ${i} of a large value` })),
}
const MASTERS = { k1: Buffer.alloc(32, 1).toString('base64'), k2: Buffer.alloc(32, 2).toString('base64') }

const ODD_TEXTS = [
  '',
  '\u0000\u0001\u001f',
  '\u2028\u2029',
  '\ufeff',
  '\ud800',
  'a\udfffb',
  '😀',
  'e\u0301',
  '"\\/',
  '</script>',
]

/** Each opens logs in a store of its own and writes to them. */
const SCENARIOS = {
  async 'typed-values'({ open }) {
    const log = await open('typed')
    await log.update(() => [
      {
        kind: 'input',
        ops: [
          set('json', {
            null: null,
            true: true,
            zero: 0,
            float: 0.1,
            big: 1e300,
            text: 'hello',
            list: [1, [2, [3]]],
            empty: [{}, []],
          }),
          set('dates', [new Date(0), new Date(8.64e15), new Date(-8.64e15), new Date(-62_198_755_200_000)]),
          set('bigints', [0n, -1n, 255n, 2n ** 64n, -(2n ** 200n)]),
          set('bytes', [new Uint8Array(), new Uint8Array([0, 255, 10]), new Uint8Array(300).map((_, i) => i)]),
          set('numbers', [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 5e-324]),
          set('texts', ODD_TEXTS),
        ],
      },
    ])
    const odd = Object.fromEntries(
      ['__proto__', 'constructor', 'toJSON', '', '0', '10', '-1', ...ODD_TEXTS].map((key, i) => [key, [i, BigInt(i)]]),
    )
    await log.update(() => [
      { kind: 'step', ops: [set('keys', odd), set(['__proto__', 'toString'], 1)], data: { at: new Date(5), by: [1n] } },
    ])
  },

  async operations({ open }) {
    const log = await open({ user: 'user=42', session: '{bf,847}' })
    await log.update(() => [{ kind: 'input', ops: [set('a', { b: { c: 1 } }), push('list', 1, 'two', null)] }])
    await log.update(() => [
      { kind: 'step', ops: [set(['a', 'b', 'd', 'e'], [1]), push(['made', 'list'], {}), push('list')] },
    ])
    await log.update(() => [
      {
        kind: 'step',
        ops: [splice('list', 1, 1, 'x', 'y'), set(['list', 0], new Date(1)), set(['a', 'b', 'd', 'e', 0], 2n)],
      },
    ])
    await log.update(() => [
      { kind: 'step', ops: [remove(['a', 'b', 'c']), remove('nothing'), remove(['no', 'where'])] },
    ])
    await log.update(() => [{ kind: 'note', data: 'only data' }, { kind: 'nothing-at-all' }])
  },

  async 'compressed-and-plain'({ open }) {
    const log = await open('compressed')
    await log.update(() => [{ kind: 'step', ops: [set('short', 'plain')] }])
    await log.update(() => [
      { kind: 'step', ops: [push('lines', ...Array.from({ length: 100 }, (_, i) => `line ${i} repeats itself`))] },
    ])
    await log.update(() => [
      { kind: 'step', ops: [set('words', 'Some lines are short, some lines are not. '.repeat(20))] },
    ])
    const noise = Array.from({ length: 64 }, (_, i) => createHash('sha256').update(String(i)).digest('base64'))
    await log.update(() => [{ kind: 'step', ops: [set('noise', noise)] }])
    await log.update(() => [
      { kind: 'step', ops: [push('lines', ...Array.from({ length: 6000 }, (_, i) => `line ${i}`))] },
    ])
  },

  async keyframes({ open, tick }) {
    const log = await open('keyframes')
    for (let i = 0; i < 14; i++) {
      await tick()
      const lines = Array.from({ length: 6 }, (_, line) => `entry ${i}, line ${line}. `.repeat(40))
      await log.update(() => [{ kind: 'step', ops: [set(`slot-${i % 3}`, lines), push('count', i)] }])
    }
    await log.update(() => [
      { kind: 'step', keyframe: true, ops: [remove('slot-0')], index: { status: 'idle', wakeAt: 5, expiresAt: 6 } },
    ])
    await log.update(() => [{ kind: 'step', ops: [set('after', true)] }])
  },

  async 'labels-and-claims'({ open, tick }) {
    const log = await open('claimed')
    await log.update(() => [
      {
        kind: 'input',
        index: { status: 'queued', metadata: { plan: 'pro', age: 4.5, vip: true, gone: 'x' }, tags: { first: 0 } },
      },
    ])
    const claim = await log.claim({ owner: 'worker-1', ms: 1000 })
    await claim.update(() => [
      {
        kind: 'step',
        ops: [set('a', 1)],
        index: { status: 'running', wakeAt: 1_800_000_000_000, metadata: { gone: null } },
      },
    ])
    await tick()
    await log.update(() => [{ kind: 'answer', data: { approved: true } }])
    await log.claim({ owner: 'worker-2', ms: 1000, force: true })
    await log.tag('checkpoint é', 2)
    await log.untag('first')
    await log.update(() => [{ kind: 'signal', keyframe: true, index: { wakeAt: null, expiresAt: 1_900_000_000_000 } }])
  },

  async forks({ open, tick }) {
    const log = await open('forked')
    await log.update(() => [{ kind: 'input', ops: [set('a', 1)], index: { tags: { kept: 0 }, metadata: { m: 1 } } }])
    await tick()
    await log.update(() => [{ kind: 'step', ops: [set('a', 2), set('text', LONG_TEXT)] }])
    const fork = await log.fork({
      at: 0,
      branch: parseBranchId('what if ~%?'),
      draft: { ops: [set('forked', true)], data: { why: 'to see' } },
    })
    await fork.update(() => [{ kind: 'step', ops: [push('list', 1)] }])
    await fork.update(() => [{ kind: 'step', ops: [push('list', 2)], keyframe: true }])
    await fork.update(() => [{ kind: 'step', ops: [push('list', 3)] }])
    const again = await fork.fork({ branch: parseBranchId('again') })
    await again.update(() => [{ kind: 'step', ops: [set('a', 3)] }])
  },

  async blobs({ open }) {
    const log = await open('blobs')
    await log.update(() => [
      {
        kind: 'step',
        ops: [
          set('text', LONG_TEXT),
          set(
            'bytes',
            new Uint8Array(3000).map((_, i) => i * 7),
          ),
          push('list', WHOLE, 1),
        ],
      },
    ])
    await log.update(() => [{ kind: 'step', ops: [push('list', WHOLE, LONG_TEXT)], data: WHOLE }])
    await log.update(() => [{ kind: 'step', keyframe: true }])
    await log.update(() => [{ kind: 'step', ops: [set(['list', 0, 'parts', 0, 'text'], 'changed')], keyframe: true }])
    await log.update(() => [{ kind: 'step', ops: [set('lone', `${LONG_TEXT}\ud800`)] }])
  },

  async pruned({ open, store }) {
    const log = await open('pruned')
    for (let i = 0; i < 6; i++) await log.update(() => [{ kind: 'step', ops: [push('list', i)], keyframe: i === 3 }])
    await store.prune(log.key, 4)
  },

  async 'store-writes'({ open }) {
    const log = await open('writes')
    await log.update(() => [
      {
        kind: 'step',
        ops: [set('a', 1)],
        store: [
          ['put', 'space', 'key', { at: new Date(1), n: 1n }, null],
          ['delete', 'space', 'old'],
        ],
      },
    ])
    await log.update(() => [{ kind: 'step', store: [['put', 'space', 'key', LONG_TEXT, 1_900_000_000_000]] }])
    await log.update(() => [{ kind: 'step', keyframe: true }])
  },

  async authenticated(context) {
    await writeUnderKeys(context, { current: 'k1', masters: { k1: MASTERS.k1 }, encrypt: false })
  },

  async encrypted(context) {
    await writeUnderKeys(context, { current: 'k1', masters: { k1: MASTERS.k1 } })
  },

  async 'keys-rotated-and-rewrapped'({ withKeys, tick }) {
    const first = withKeys({ current: 'k1', masters: { k1: MASTERS.k1 } })
    const log = await first.open('rotated')
    await log.update(() => [{ kind: 'step', ops: [set('a', LONG_TEXT)] }])
    await tick()
    await first.store.keys(TENANT).rotate()
    await log.update(() => [{ kind: 'step', ops: [set('b', LONG_TEXT)] }])
    const second = withKeys({ current: 'k2', masters: MASTERS })
    await second.store.keys(TENANT).rewrap()
    const again = await second.open('rotated')
    await again.update(() => [{ kind: 'step', ops: [set('c', 1)] }])
    // The older master is not needed any more, and not given to the reader.
    return { keys: { current: 'k2', masters: { k2: MASTERS.k2 } } }
  },
}

const TENANT = parseTenantId('acme')

async function writeUnderKeys({ withKeys }, keys) {
  const { open } = withKeys(keys)
  const log = await open('secret')
  await log.update(() => [
    { kind: 'step', ops: [set('text', LONG_TEXT), set('bytes', new Uint8Array(3000)), push('list', WHOLE)] },
  ])
  await log.update(() => [{ kind: 'step', ops: [set('small', 1n)], keyframe: true }])
  await log.update(() => [{ kind: 'step', ops: [set('small', 2n)] }])
  await log.fork({ branch: parseBranchId('fork') })
}

async function makeFixture(name, scenario) {
  const clock = virtualClock({ now: Date.UTC(2026, 0, 2, 3, 4, 5) })
  let ids = 0
  const randomId = () => `fixture-${String(ids++).padStart(8, '0')}`
  const driver = await openMemory({ clock })
  let lastKeys
  const context = (keys) => {
    lastKeys = keys ?? lastKeys
    const store = new LogStore(driver, { clock, randomId, blobThreshold: BLOB_THRESHOLD, ...(keys ? { keys } : {}) })
    const open = (thread, branch = 'main') =>
      store.open({ tenant: TENANT, thread: parseThreadId(thread), branch: parseBranchId(branch) })
    return { store, open, tick: () => clock.advance(1000), withKeys: context }
  }
  const told = await scenario(context())
  const keys = told?.keys ?? lastKeys
  const reader = context(keys).store
  const { heads } = await driver.heads({ order: 'created', direction: 'asc', limit: 100 })
  const logs = []
  const blobs = new Set()
  for (const head of heads) {
    const { lease: _, ...rest } = head
    const entries = await driver.read(head.log, head.base.seq, 1000)
    logs.push({ head: rest, entries: entries.map(showEntry), expected: await expectedOf(reader, head) })
  }
  for (const { hash } of await driver.listBlobs(TENANT, { limit: 1000 })) blobs.add(hash)
  const stored = await driver.getBlobs(TENANT, [...blobs])
  return {
    about: `${name}: stored format 3. Never change this file; see scripts/make-fixtures.mjs.`,
    format: 3,
    blobThreshold: BLOB_THRESHOLD,
    ...(keys ? { keys } : {}),
    logs,
    blobs: [...blobs].sort().map((hash) => ({ tenant: TENANT, hash, bytes: base64(stored.get(hash)) })),
  }
}

function showEntry({ seq, keyframe, hash, header, body }) {
  return { seq, keyframe, hash, header: base64(header), body: base64(body) }
}

async function expectedOf(store, { log, base }) {
  if (log.thread.startsWith('{}')) return null
  const handle = await store.open(log)
  const expected = []
  for await (const { header, body, fold } of handle.entries(base.seq)) {
    const { state, index, origin, epoch, at } = fold
    expected.push({
      kind: header.kind,
      epoch,
      at,
      origin,
      index: spell(index),
      state: spell(state),
      ...(body.data === undefined ? {} : { data: spell(body.data) }),
      ...(body.store === undefined ? {} : { store: spell(body.store) }),
    })
  }
  return expected
}

/** A value spelled out so that plain JSON holds it, by other rules than those under test. */
function spell(value) {
  if (typeof value === 'bigint') return { bigint: String(value) }
  if (typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0)))
    return { number: Object.is(value, -0) ? '-0' : String(value) }
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Date) return { date: value.getTime() }
  if (value instanceof Uint8Array) return { bytes: base64(value) }
  if (Array.isArray(value)) return { list: value.map(spell) }
  return { object: Object.entries(value).map(([key, child]) => [key, spell(child)]) }
}

function base64(bytes) {
  return Buffer.from(bytes).toString('base64')
}

mkdirSync(folder, { recursive: true })
for (const [name, scenario] of Object.entries(SCENARIOS)) {
  const file = join(folder, `${name}.json`)
  if (existsSync(file)) {
    console.log(`kept    ${name}.json`)
    continue
  }
  writeFileSync(file, `${JSON.stringify(await makeFixture(name, scenario), undefined, 1)}\n`)
  console.log(`written ${name}.json`)
}
const sums = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .sort()
  .map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex')}  ${name}\n`,
  )
writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''))
