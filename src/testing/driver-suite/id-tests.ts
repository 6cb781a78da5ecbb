import assert from 'node:assert/strict'
import {
  MAX_BRANCH_BYTES,
  MAX_ID_BYTES,
  parseBranchId,
  parseTenantId,
  parseThreadId,
  type ThreadIdInput,
} from '../../core/ids.js'
import type { Driver, LogKey } from '../../log/contract.js'
import { makeAppend, makeBytes, makeHash, mustAppend } from '../entries.js'
import { assertBytes, createLog, headOf, LONG_MS, logKey, type SuiteTest } from './suite-context.js'

const ODD_IDS: readonly string[] = [
  'plain',
  'Plain',
  'PLAIN',
  '/',
  '/etc/passwd',
  '.',
  '..',
  '../..',
  '../../escape',
  'a/../b',
  'con',
  'NUL',
  'aux.txt',
  'trailing.',
  'trailing ',
  ' leading',
  ' ',
  '   ',
  ':',
  'a:b:c',
  '{}',
  '{tag}',
  'a{b}c',
  '{{',
  '}',
  '%',
  '%2e%2e%2f',
  '%00',
  '_',
  'a_b',
  'axb',
  '*',
  '?',
  '[a]',
  "o'clock",
  '"quoted"',
  '`tick`',
  '\\',
  '\\{x}',
  'c:\\windows',
  '$1',
  "'; DROP TABLE heads; --",
  '-',
  '--help',
  '~',
  '#hash',
  'a|b',
  'a&b',
  'a;b',
  'a,b=c',
  '<xml>',
  '0',
  '-1',
  '1e3',
  '__proto__',
  'constructor',
  'null',
  'undefined',
  'h\u00e9llo', // composed
  'he\u0301llo', // decomposed
  'ﬁ', // a ligature that NFKC would take apart
  'ß',
  'SS',
  'İ',
  'ı',
  '日本語',
  'שלום',
  '\u202Eevil',
  '\u200B',
  '\u00A0',
  '\uFEFF',
  '🦀',
  '👩‍👩‍👧‍👦',
  '\u{10FFFD}',
]

export const idTests: readonly SuiteTest[] = [
  {
    name: 'carries a thread id of any characters through every method',
    timeoutMs: 600_000,
    async run({ driver, tenant }) {
      const inputs: ThreadIdInput[] = [
        ...ODD_IDS,
        'x'.repeat(MAX_ID_BYTES),
        '🦀'.repeat(MAX_ID_BYTES / 4),
        { user: 'u', session: 's' },
        { user: 'u,session=s' },
        '{session=s,user=u}',
      ]
      await checkLogs(
        driver,
        inputs.map((input) => ({ ...logKey(tenant), thread: parseThreadId(input) })),
      )
    },
  },
  {
    name: 'carries a branch id of any characters through every method',
    timeoutMs: 600_000,
    async run({ driver, tenant }) {
      const inputs = [...ODD_IDS, 'x'.repeat(MAX_BRANCH_BYTES), '🦀'.repeat(MAX_BRANCH_BYTES / 4)]
      await checkLogs(
        driver,
        inputs.map((input) => ({ ...logKey(tenant), branch: parseBranchId(input) })),
      )
    },
  },
  {
    name: 'carries a tenant id of any characters through every method',
    timeoutMs: 600_000,
    async run({ driver, tenant }) {
      const fill = (unit: string) =>
        tenant + unit.repeat(Math.floor((MAX_ID_BYTES - tenant.length) / Buffer.byteLength(unit)))
      const inputs = [...ODD_IDS.flatMap((id) => [`${tenant}${id}`, `${id}${tenant}`]), fill('x'), fill('🦀')]
      await checkLogs(
        driver,
        inputs.map((input) => ({ ...logKey(tenant), tenant: parseTenantId(input) })),
      )
    },
  },
  {
    name: 'carries the longest ids of all three kinds together',
    async run({ driver, tenant }) {
      await checkLogs(driver, [
        {
          tenant: parseTenantId(tenant + '%'.repeat(MAX_ID_BYTES - tenant.length)),
          thread: parseThreadId('/'.repeat(MAX_ID_BYTES)),
          branch: parseBranchId('é'.repeat(MAX_BRANCH_BYTES / 2)),
        },
      ])
    },
  },
]

/** Takes logs that differ only in one odd id through every method, side by side, so that any mix-up shows. */
async function checkLogs(driver: Driver, logs: readonly LogKey[]): Promise<void> {
  const claim = { kind: 'claim', owner: 'w', ms: LONG_MS, force: false } as const
  const created = new Map<LogKey, string>()
  for (const [i, log] of logs.entries()) {
    const at = await createLog(driver, log, { count: 2, index: { status: `s${i}`, createdAt: i, updatedAt: i } })
    created.set(log, (await mustAppend(driver, makeAppend(log, at, { lease: claim, index: { status: `s${i}` } }))).hash)
  }
  for (const [i, log] of logs.entries()) {
    const name = JSON.stringify(log)
    const head = await headOf(driver, log)
    assert.deepEqual({ ...head.log }, { ...log })
    assert.equal(head.hash, created.get(log), name)
    assert.equal((await driver.tail(log))?.entries.at(-1)?.hash, head.hash, name)
    assert.equal((await driver.read(log, 0, 10)).length, 3, name)
    assert.equal((await driver.headers(log, { limit: 10 })).length, 3, name)
    const { heads } = await driver.heads({ ...log, limit: 5 })
    assert.deepEqual(
      heads.map((found) => [found.log.tenant, found.log.thread, found.log.branch, found.index.status]),
      [[log.tenant, log.thread, log.branch, `s${i}`]],
    )
    assert.equal(await driver.renew(log, head.incarnation, 1, LONG_MS), true, name)
    assert.equal(await driver.reindex(log, head, { ...head.index, status: `r${i}` }), true, name)
    assert.deepEqual(await driver.prune(log, head.incarnation, 2), { removed: 2 }, name)
  }
  const blob = { hash: makeHash('blob'), bytes: makeBytes('blob', 10) }
  for (const [i, log] of logs.entries()) {
    const { tenant, thread, branch } = log
    const head = await headOf(driver, log)
    assert.equal(head.index.status, `r${i}`)
    await driver.putBlobs(tenant, [blob])
    assert.deepEqual(await driver.touchBlobs(tenant, [blob.hash]), [])
    assertBytes((await driver.getBlobs(tenant, [blob.hash])).get(blob.hash), blob.bytes, 'the blob')
    const [info] = await driver.listBlobs(tenant, { limit: 1 })
    assert.equal(await driver.removeBlob(tenant, blob.hash, info?.touchedAt ?? -1), true)
    const isLast = !logs.slice(i + 1).some((other) => other.tenant === tenant && other.thread === thread)
    const expect = [{ branch, incarnation: head.incarnation, seq: head.seq }]
    const tombstone = { at: i, reason: `reason ${i}` }
    assert.deepEqual(await driver.erase({ tenant, thread, branch, expect, tombstone }), { erased: 1 })
    assert.equal(await driver.head(log), undefined)
    const left = await driver.tombstone(tenant, thread)
    assert.deepEqual(left && { ...left }, isLast ? tombstone : undefined)
  }
}
