import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ThreadId } from 'holdfast'
import type { LogKey } from 'holdfast/driver'
import type { BranchId, TenantId } from 'holdfast/log'
import { openPostgres } from '#src/drivers/postgres/open-postgres.js'
import { makeAppend } from '#src/testing/entries.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { dropSchema, newSchema, runSql } from '../support/postgres.js'
import { rounds } from '../support/scale.js'
import { postgresUrl } from '../support/servers.js'

const script = fileURLToPath(new URL('./postgres-child.mjs', import.meta.url))
const given = await postgresUrl()
const url = given as string
const children = new Set<ChildProcess>()
let schema: string

beforeEach(() => {
  schema = newSchema()
})

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL')
  await dropSchema(url, schema)
})

/** A child and what it says, one JSON value per line. */
function start(...args: string[]): { child: ChildProcess; said: AsyncIterator<unknown>; all(): Promise<unknown[]> } {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  children.add(child)
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  void exited.then(() => children.delete(child))
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  const said: AsyncIterator<unknown> = {
    async next() {
      const { value, done } = await lines.next()
      return done ? { value: undefined, done: true } : { value: JSON.parse(value) as unknown, done: false }
    },
  }
  const all = async () => {
    const values: unknown[] = []
    for (let line = await said.next(); !line.done; line = await said.next()) values.push(line.value)
    expect(await exited).toBe(0)
    return values
  }
  return { child, said, all }
}

function key(thread: string): LogKey {
  return { tenant: 't' as TenantId, thread: thread as ThreadId, branch: 'main' as BranchId }
}

describe.skipIf(given === undefined)('several processes on one Postgres', () => {
  it('lets twenty processes open an empty schema at the same moment', { timeout: 600_000 }, async () => {
    const running = Array.from({ length: 20 }, (_, i) => start('open', url, schema, `thread-${i}`).all())
    for (const said of await Promise.all(running)) expect(said).toEqual(['done'])
    const [{ logs, versions }] = (await runSql(
      url,
      `SELECT (SELECT count(*)::int FROM "${schema}".logs) AS logs,
         (SELECT array_agg(version ORDER BY version) FROM "${schema}".migrations) AS versions`,
    )) as [{ logs: number; versions: number[] }]
    expect(logs).toBe(20)
    expect(versions).toEqual(versions.map((_, i) => i + 1))
  })

  it('lets two processes race on one log, and each entry follows the one its writer saw', {
    timeout: 600_000,
  }, async () => {
    const each = rounds(250, 1000)
    const racers = [start('race', url, schema, String(each)), start('race', url, schema, String(each))]
    const written = (await Promise.all(racers.map((racer) => racer.all()))).flat() as [number, string, number, string][]
    const bySeq = new Map(written.map(([seq, hash]) => [seq, hash]))
    expect(bySeq.size).toBe(2 * each)
    for (const [seq, , seqBefore, hashBefore] of written) {
      expect(seqBefore).toBe(seq - 1)
      if (seq > 0) expect(hashBefore).toBe(bySeq.get(seq - 1))
    }
    const driver = await openPostgres(url, { schema })
    const entries = await driver.read(key('race'), 0, 2 * each + 1)
    expect(entries.map(({ seq, hash }) => [seq, hash])).toEqual([...bySeq].sort(([a], [b]) => a - b))
    await driver.close()
  })

  it('fences a stopped process: after a takeover its late append conflicts', async () => {
    const owner = start('hold', url, schema, '400')
    expect((await owner.said.next()).value).toBe('claimed')
    owner.child.stdin?.write('go on\n')
    expect((await owner.said.next()).value).toMatchObject({ status: 'appended' })
    owner.child.kill('SIGSTOP')

    const driver = await openPostgres(url, { schema })
    const claim = { kind: 'claim', owner: 'second', ms: 60_000, force: false } as const
    let taken: string | undefined
    while (taken !== 'appended') {
      const head = await driver.head(key('held'))
      if (head === undefined) throw new Error('the log is gone')
      taken = (await driver.append([makeAppend(head.log, head, { lease: claim })]))[0]?.status
      // Only ever held until the lease of the stopped process has run out.
      expect(['held', 'appended']).toContain(taken)
      await sleep(20)
    }
    owner.child.kill('SIGCONT')
    owner.child.stdin?.write('go on\n')
    expect((await owner.said.next()).value).toEqual({ status: 'conflict', epoch: 2 })
    owner.child.stdin?.end()
    expect((await driver.head(key('held')))?.seq).toBe(2)
    await driver.close()
  })
})
