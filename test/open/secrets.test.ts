import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { describeStoreUrl } from '#src/internal.js'
import { type KeyOptions, openHoldfast } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { looksSecret } from '#src/core/wording/secrets.js'
import { toDriverError } from '#src/drivers/redis/server/errors.js'
import { K1, keys, logKey, memoryPlace, write } from '../support/keyed-store.js'
import { randomly, rounds } from '../support/scale.js'

// Errors end up in logs. Shown is what console.log shows: message, data, stack, and all of the causes with their own fields.

const SECRET = 'hunter2Zx9'

async function shown(doing: Promise<unknown>): Promise<string> {
  const error = await doing.then(
    () => 'nothing failed',
    (cause: unknown) => cause,
  )
  expect(error).toMatchObject({ code: expect.any(String) })
  return `${inspect(error, { depth: 10, showHidden: true })} ${JSON.stringify(error)}`
}

/** Every place in a url where somebody may have put a password, with characters that are taken for something else. */
const addresses = fc
  .record({
    scheme: fc.constantFrom('redis', 'rediss', 'valkey', 'postgres', 'postgresql', 'mysql', 'https', 'postgress'),
    before: fc.constantFrom('', '12', '%', '#', '?', '/', ',', ':', '@', '%zz', '\\', ' '),
    after: fc.constantFrom('', '12', '%', '#', '?', '/', ',', ':', '@', '%zz', '\\', ' '),
    host: fc.constantFrom('127.0.0.1:1', 'localhost:1', '[::1]:1', '127.0.0.1:99999999'),
    form: fc.constantFrom('password', 'user', 'bare', 'query', 'auth', 'both', 'noSlashes'),
    path: fc.constantFrom('', '/0', '/abc'),
  })
  .map(({ scheme, before, after, host, form, path }) => {
    const secret = `${before}${SECRET}${after}`
    if (form === 'query') return `${scheme}://${host}${path}?password=${secret}`
    if (form === 'auth') return `${scheme}://${host}${path}?a=b&auth=${secret}`
    if (form === 'bare') return `${scheme}://:${secret}@${host}${path}`
    if (form === 'user') return `${scheme}://${secret}@${host}${path}`
    if (form === 'noSlashes') return `${scheme}:user:${secret}@${host}${path}`
    if (form === 'both') return `${scheme}://user:${secret}@${host}${path}?password=${secret}`
    return `${scheme}://user:${secret}@${host}${path}`
  })

describe('a password', () => {
  it('in any part of a url is not in what is shown of it', () => {
    fc.assert(
      fc.property(addresses, (url) => !describeStoreUrl(url).includes(SECRET)),
      randomly(rounds(1000)),
    )
  })

  it('in a url that does not work is in no error, nor in what caused it', async () => {
    await fc.assert(
      fc.asyncProperty(addresses, async (url) => {
        const redis = { connectTimeoutMs: 2000 }
        const text = await shown(openHoldfast(url, { redis, postgres: { connectTimeoutMs: 2000 } }))
        expect(text).not.toContain(SECRET)
      }),
      randomly(rounds(100)),
    )
  })

  it('in a url without a scheme, or that is no text, is in no error', async () => {
    for (const url of [
      `user:${SECRET}@host/db`,
      `//user:${SECRET}@host`,
      new URL(`http://u:${SECRET}@h`),
      { url: SECRET },
    ]) {
      expect(await shown(openHoldfast(url as string))).not.toContain(SECRET)
    }
  })

  it('in a command that the Redis client hangs on its error is taken off', () => {
    const reply = Object.assign(new Error('WRONGPASS invalid username-password pair'), {
      name: 'ReplyError',
      command: { name: 'auth', args: ['user', SECRET] },
    })
    expect(inspect(toDriverError(reply, false), { depth: 10 })).not.toContain(SECRET)
    expect(inspect(toDriverError(reply, false), { depth: 10 })).toContain("name: 'auth'")
  })

  it('is left out, and the rest is shown', () => {
    const cases = {
      'redis://user:pw@host:6379/0?password=x': 'redis://host:6379/0',
      'rediss://a:1,rediss://u:p@b:2': 'rediss://a:1,rediss://b:2',
      'postgres://user:pw@db.internal/agents?sslmode=require': 'postgres://db.internal/agents',
      'postgres://user:p/w@host/db': 'postgres://…',
      'sqlite:agents.db?synchronous=normal': 'sqlite:agents.db',
      'file:/var/lib/agents': 'file:/var/lib/agents',
      'memory:': 'memory:',
    }
    for (const [url, expected] of Object.entries(cases)) expect(describeStoreUrl(url)).toBe(expected)
  })
})

describe('a master key', () => {
  const text = { base64: K1.toString('base64'), base64url: K1.toString('base64url'), hex: K1.toString('hex') }
  const misplaced: [string, unknown][] = Object.entries(text).flatMap(([encoding, key]): [string, unknown][] => [
    [`${encoding}, as its own id`, { current: key, masters: { [key]: K1 } }],
    [`${encoding}, as its own id in text`, { current: key, masters: { [key]: text.base64 } }],
    [`${encoding}, swapped with its id`, { current: 'k1', masters: { [key]: 'k1' } }],
    [`${encoding}, as the id of none`, { current: 'k1', masters: { [key]: undefined } }],
    [`${encoding}, as the current one`, { current: key, masters: { k1: K1 } }],
    [`${encoding}, in place of the masters`, { current: 'k1', masters: key }],
    [`${encoding}, in place of everything`, key],
    [`${encoding}, as a field`, { current: 'k1', masters: { k1: K1 }, [key]: true }],
    [`${encoding}, as the id of another`, { current: 'k1', masters: { [key]: randomBytes(32) } }],
  ])

  it.each(misplaced)('in %s, is in no error', async (_where, options) => {
    const seen = await shown(openHoldfast('memory:', { keys: options as KeyOptions }))
    for (const key of Object.values(text)) expect(seen).not.toContain(key)
  })

  it('that is missing is named by its id, unless that looks like a key', async () => {
    const place = await memoryPlace()
    const id = randomBytes(32).toString('hex')
    await write(await place.open({ current: id, masters: { [id]: K1 } }), logKey('a'), 'x', 1)
    expect(await shown((await place.open(keys)).open(logKey('a')))).not.toContain(id)
  })
})

describe('a name', () => {
  it.each([
    'k1',
    'prod-2026-11',
    'projects-acme-keyrings-payments-master',
    'eu-west-1.customer-data.2026',
    'MasterKeyOfTheProductionCluster',
  ])('%s is no secret', (name) => expect(looksSecret(name)).toBe(false))

  it('of random bits is one, but for a few in thousands', () => {
    for (const encoding of ['base64', 'base64url', 'hex'] as const) {
      const names = Array.from({ length: 2000 }, () => randomBytes(32).toString(encoding))
      expect(names.filter(looksSecret).length).toBeGreaterThan(1980)
    }
  })
})
