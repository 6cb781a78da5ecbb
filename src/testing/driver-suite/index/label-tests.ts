import assert from 'node:assert/strict'
import type { MetadataValue } from '../../../log/contract.js'
import { createLog, headOf, logKey, type SuiteTest, threadsFound } from '../suite-context.js'

/** Text that means something to some query language, and must mean nothing here. */
const ODD_TEXTS: readonly string[] = [
  "it's",
  'say "hi"',
  'back\\slash',
  '`tick`',
  '%',
  '_',
  'a%',
  'a_c',
  'abc',
  '*',
  '?',
  '[a-z]',
  '[]',
  "'; DROP TABLE heads; --",
  "' OR '1'='1",
  '$1',
  ':name',
  '@p',
  '$.a.b',
  '$[*]',
  '$.*',
  '{"a":1}',
  '["a"]',
  '{a,b}',
  '{}',
  ']] redis.call("FLUSHALL") --[[',
  'a"]=nil;os.exit() --',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'null',
  'undefined',
  'true',
  '1',
  'NaN',
  ' ',
  ' padded ',
  'padded',
  'tab\there',
  'line\nbreak',
  'Case',
  'case',
  'a:b',
  'a|b',
  'a,b',
  'a/b',
  '../up',
  '\u00e9',
  'e\u0301',
  '\u65e5\u672c\u8a9e',
  '\u{1f980}',
  '\u05e9\u05dc\u05d5\u05dd',
  '\u200b',
  'x'.repeat(500),
]

export const labelTests: readonly SuiteTest[] = [
  {
    name: 'finds each tag by exactly its characters, whatever they are',
    timeoutMs: 300_000,
    async run({ driver, tenant }) {
      for (const [i, tag] of ODD_TEXTS.entries()) {
        await createLog(driver, logKey(tenant, `t${i}`), { index: { tags: [tag] } })
      }
      for (const [i, tag] of ODD_TEXTS.entries()) {
        assert.deepEqual(
          await threadsFound(driver, { tenant, tags: [tag] }),
          [`t${i}`],
          `by tag ${JSON.stringify(tag)}`,
        )
        assert.deepEqual([...(await headOf(driver, logKey(tenant, `t${i}`))).index.tags], [tag])
      }
    },
  },
  {
    name: 'finds each metadata key and value by exactly its characters, whatever they are',
    timeoutMs: 300_000,
    async run({ driver, tenant }) {
      for (const [i, text] of ODD_TEXTS.entries()) {
        await createLog(driver, logKey(tenant, `k${i}`), { index: { metadata: record([[text, 'v']]) } })
        await createLog(driver, logKey(tenant, `v${i}`), { index: { metadata: record([['k', text]]) } })
      }
      for (const [i, text] of ODD_TEXTS.entries()) {
        const byKey = record([[text, 'v']])
        assert.deepEqual(
          await threadsFound(driver, { tenant, metadata: byKey }),
          [`k${i}`],
          `key ${JSON.stringify(text)}`,
        )
        const byValue = record([['k', text]])
        assert.deepEqual(
          await threadsFound(driver, { tenant, metadata: byValue }),
          [`v${i}`],
          `value ${JSON.stringify(text)}`,
        )
        const { metadata } = (await headOf(driver, logKey(tenant, `k${i}`))).index
        assert.deepEqual(Object.entries(metadata), [[text, 'v']])
      }
    },
  },
  {
    name: 'finds each status by exactly its characters, whatever they are',
    timeoutMs: 300_000,
    async run({ driver, tenant }) {
      for (const [i, status] of ODD_TEXTS.entries()) {
        await createLog(driver, logKey(tenant, `s${i}`), { index: { status } })
      }
      for (const [i, status] of ODD_TEXTS.entries()) {
        assert.deepEqual(await threadsFound(driver, { tenant, status: [status] }), [`s${i}`])
      }
    },
  },
  {
    name: 'keeps many labels on one log, and finds it by all of them together',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const tags = [...ODD_TEXTS].sort()
      const metadata = record(ODD_TEXTS.map((text, i): [string, MetadataValue] => [text, i % 2 === 0 ? text : i]))
      await createLog(driver, log, { index: { tags, metadata } })
      await createLog(driver, logKey(tenant, 'other'), { index: { tags: tags.slice(1), metadata: {} } })
      const { index } = await headOf(driver, log)
      assert.deepEqual([...index.tags], tags)
      assert.deepEqual(sorted(index.metadata), sorted(metadata))
      assert.deepEqual(await threadsFound(driver, { tenant, tags }), ['thread'])
      assert.deepEqual(await threadsFound(driver, { tenant, metadata }), ['thread'])
      assert.deepEqual(await threadsFound(driver, { tenant, tags, metadata }), ['thread'])
    },
  },
  {
    name: 'tells numbers, strings and booleans apart in metadata',
    async run({ driver, tenant }) {
      const values: MetadataValue[] = [1, '1', true, 'true', 0, '0', false, 'false', '', 'null', -1, '-1', 1.5, '1.5']
      for (const [i, value] of values.entries()) {
        await createLog(driver, logKey(tenant, `v${i}`), { index: { metadata: { k: value } } })
      }
      for (const [i, value] of values.entries()) {
        const found = await threadsFound(driver, { tenant, metadata: { k: value } })
        assert.deepEqual(found, [`v${i}`], `by ${typeof value} ${JSON.stringify(value)}`)
        const { metadata } = (await headOf(driver, logKey(tenant, `v${i}`))).index
        assert.equal(metadata.k, value)
      }
    },
  },
  {
    name: 'returns and finds numbers exactly, to the last digit',
    async run({ driver, tenant }) {
      const numbers = [
        0.1,
        0.1 + 0.2,
        0.3,
        1 / 3,
        Math.PI,
        1e21,
        1e-7,
        1e300,
        5e-324,
        Number.MAX_VALUE,
        Number.MAX_SAFE_INTEGER,
        Number.MAX_SAFE_INTEGER - 1,
        Number.MIN_SAFE_INTEGER,
        2 ** 53,
        1_700_000_000_123,
      ]
      for (const [i, value] of numbers.entries()) {
        await createLog(driver, logKey(tenant, `n${i}`), { index: { metadata: { n: value } } })
      }
      for (const [i, value] of numbers.entries()) {
        assert.equal((await headOf(driver, logKey(tenant, `n${i}`))).index.metadata.n, value)
        assert.deepEqual(await threadsFound(driver, { tenant, metadata: { n: value } }), [`n${i}`], `by ${value}`)
      }
    },
  },
  {
    name: 'does not mistake a tag for metadata, nor a key for its value',
    async run({ driver, tenant }) {
      await createLog(driver, logKey(tenant, 'tag'), { index: { tags: ['x'] } })
      await createLog(driver, logKey(tenant, 'key'), { index: { metadata: { x: 'y' } } })
      await createLog(driver, logKey(tenant, 'value'), { index: { metadata: { y: 'x' } } })
      await createLog(driver, logKey(tenant, 'joined'), { index: { metadata: { 'x=y': 'x:y' }, tags: ['x=y', 'x:y'] } })
      assert.deepEqual(await threadsFound(driver, { tenant, tags: ['x'] }), ['tag'])
      assert.deepEqual(await threadsFound(driver, { tenant, metadata: { x: 'y' } }), ['key'])
      assert.deepEqual(await threadsFound(driver, { tenant, metadata: { y: 'x' } }), ['value'])
      assert.deepEqual(await threadsFound(driver, { tenant, tags: ['y'] }), [])
    },
  },
]

// `{ __proto__: … }` written out would set the prototype instead of a key.
function record(entries: readonly (readonly [string, MetadataValue])[]): Record<string, MetadataValue> {
  return Object.fromEntries(entries)
}

function sorted(metadata: Readonly<Record<string, MetadataValue>>): readonly unknown[] {
  return Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1))
}
