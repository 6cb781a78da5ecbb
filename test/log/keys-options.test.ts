import { type KeyOptions, openHoldfast } from 'holdfast'
import { ops } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { K1, keys, logKey, memoryPlace, read, write } from '../support/keyed-store.js'

const { set } = ops

const LOG = logKey('talk')

describe('the option keys', () => {
  const adopted = { tenants: ['acme'], writtenBefore: '2026-01-01', acceptUntil: '2026-02-01' }
  const good = { current: 'k1', masters: { k1: K1 } }
  it.each<[string, string, unknown]>([
    ['keys', 'null', null],
    ['keys', 'bytes', K1],
    ['keys.masters', 'no masters', { current: 'k1' }],
    ['keys.masters', 'empty', { current: 'k1', masters: {} }],
    ['keys.current', 'unknown current', { ...good, current: 'k2' }],
    ['keys.current', 'no current', { masters: good.masters }],
    ['keys.current', 'an inherited name', { ...good, current: 'constructor' }],
    ['keys.masters.k1', 'short', { ...good, masters: { k1: K1.subarray(1) } }],
    ['keys.masters.k1', 'long', { ...good, masters: { k1: Buffer.alloc(33) } }],
    ['keys.masters.k1', 'short text', { ...good, masters: { k1: K1.subarray(1).toString('base64') } }],
    ['keys.masters.k1', 'hex', { ...good, masters: { k1: K1.toString('hex') } }],
    ['keys.masters.k1', 'not base64', { ...good, masters: { k1: `${'A'.repeat(42)}!=` } }],
    ['keys.masters.k1', 'a number', { ...good, masters: { k1: 7 } }],
    ['keys.masters.<id>', 'odd id', { current: 'k 1', masters: { 'k 1': K1 } }],
    ['keys.masters.<id>', 'empty id', { current: '', masters: { '': K1 } }],
    ['keys.masters.<id>', 'long id', { current: 'k'.repeat(65), masters: { ['k'.repeat(65)]: K1 } }],
    ['keys.encrypt', 'text for a switch', { ...good, encrypt: 'yes' }],
    ['keys.acceptPlain', 'an option that is gone', { ...good, acceptPlain: true }],
    ['keys.adoptPlain', 'a switch where a decision is needed', { ...good, adoptPlain: true }],
    ['keys.adoptPlain.tenants', 'no tenants', { ...good, adoptPlain: { ...adopted, tenants: [] } }],
    ['keys.adoptPlain.tenants', 'one tenant, not in a list', { ...good, adoptPlain: { ...adopted, tenants: 'acme' } }],
    ['keys.adoptPlain.writtenBefore', 'no date', { ...good, adoptPlain: { ...adopted, writtenBefore: undefined } }],
    ['keys.adoptPlain.writtenBefore', 'no real date', { ...good, adoptPlain: { ...adopted, writtenBefore: 'soon' } }],
    ['keys.adoptPlain.acceptUntil', 'no end', { ...good, adoptPlain: { tenants: 'all', writtenBefore: new Date() } }],
    ['keys.adoptPlain.until', 'a misspelt end', { ...good, adoptPlain: { ...adopted, until: new Date() } }],
    ['keys.encrypted', 'a misspelt field', { ...good, encrypted: false }],
  ])('%s: %s is refused before anything is opened', async (field, _what, options) => {
    const error = await openHoldfast('sqlite:/nowhere/at/all.db', { keys: options as KeyOptions }).catch(
      (cause: unknown) => cause,
    )
    expect(error).toMatchObject({ code: 'invalid-option', data: { field }, remedy: expect.stringMatching(/\w/) })
    expect(String(error)).not.toContain(K1.toString('base64').slice(0, 10))
  })

  it('takes bytes, base64 and base64url of the same key alike', async () => {
    const place = await memoryPlace()
    await write(await place.open(keys), LOG, 'a', 1)
    for (const text of [K1.toString('base64'), K1.toString('base64url'), new Uint8Array(K1)]) {
      expect(await read(await place.open({ current: 'k1', masters: { k1: text } }), LOG)).toEqual({ a: 1 })
    }
  })

  it('works through openHoldfast, with the keys of the tenant of each handle', async () => {
    await using hf = await openHoldfast('memory:', { keys })
    const log = await hf.log('talk')
    await log.update(() => [{ kind: 'step', ops: [set('a', 1)] }])
    expect((await hf.threads()).threads.map(({ thread }) => thread)).toEqual(['talk'])
    expect((await hf.keys.rotate()).dataKeys).toHaveLength(2)
    expect((await hf.keys.rewrap()).dataKeys).toHaveLength(2)
    expect((await hf.tenant('b').keys.status()).dataKeys).toHaveLength(0)
    expect((await hf.tenant('b').keys.rotate()).dataKeys).toHaveLength(1)
    expect((await hf.tenant('c').keys.rewrap()).dataKeys).toHaveLength(1)
    await expect(hf.erase('{}keys')).resolves.toEqual({ erased: 0 })
    expect((await hf.keys.status()).dataKeys).toHaveLength(2)
  })
})
