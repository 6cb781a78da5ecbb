import { setTimeout as sleep } from 'node:timers/promises'
import { isHoldfastError } from 'holdfast'
import type { Append, Driver, Expect, LogKey } from 'holdfast/driver'
import { openPostgres } from '#src/drivers/postgres/open-postgres.js'
import { startChaosProxy } from '#src/testing/chaos-proxy.js'
import { createLog, logKey, newTenant } from '#src/testing/driver-suite/suite-context.js'
import { expectAfter, makeAppend, mustAppend } from '#src/testing/entries.js'
import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { startPostgres } from '../../scripts/services/index.mjs'
import { dropSchema, newSchema, runSql } from '../support/postgres.js'
import { rounds } from '../support/scale.js'
import { postgresUrl } from '../support/servers.js'
import { until } from '../support/until.js'

const given = await postgresUrl()
const url = given as string
const schemas: string[] = []

function schemaName(): string {
  const schema = newSchema()
  schemas.push(schema)
  return schema
}

/** What one writer saw. */
interface Written {
  readonly log: LogKey
  /** The hashes of its log, in order, as far as it knows. */
  readonly hashes: string[]
  /** Those of appends that were rejected with the word that nothing was written. */
  readonly denied: Set<string>
  readonly counts: Counts
}

/** Grow while the writer writes. */
interface Counts {
  acknowledged: number
  nothing: number
  unknown: number
}

const noCounts = (): Counts => ({ acknowledged: 0, nothing: 0, unknown: 0 })

/**
 * Appends to a log of its own, one after another, until told to stop. After an answer that leaves it open whether the
 * append landed, it looks. One that was not there may still come late, and is then in the way of the next.
 */
async function writeUntil(driver: Driver, log: LogKey, isOver: () => boolean, counts = noCounts()): Promise<Written> {
  const written: Written = { log, hashes: [], denied: new Set(), counts }
  const open = new Map<string, Append>()
  let head: Expect | null = null
  const landed = (append: Append) => {
    written.hashes.push(append.entries[0].hash)
    head = expectAfter(append)
    open.clear()
  }
  while (!isOver()) {
    const append = makeAppend(log, head)
    const { hash } = append.entries[0]
    try {
      const [result] = await driver.append([append])
      if (result.status === 'appended') {
        counts.acknowledged++
        landed(append)
      } else {
        const late = open.get(result.head?.hash ?? '')
        if (late === undefined) throw new Error('the log ends with an entry that nobody sent')
        landed(late)
      }
    } catch (error) {
      if (!isHoldfastError(error, 'unavailable')) throw error
      if (error.data['written'] === 'nothing') {
        counts.nothing++
        written.denied.add(hash)
        await sleep(5)
      } else {
        counts.unknown++
        if (await hasLanded(driver, log, hash)) landed(append)
        else open.set(hash, append)
      }
    }
  }
  // The last one that was given up may have come after all.
  const end = await recovers(() => driver.head(log))
  const late = open.get(end?.hash ?? '')
  if (late !== undefined) landed(late)
  return written
}

async function hasLanded(driver: Driver, log: LogKey, hash: string): Promise<boolean> {
  return (await recovers(() => driver.head(log)))?.hash === hash
}

async function expectExactly(driver: Driver, { log, hashes, denied }: Written): Promise<void> {
  const entries = await driver.read(log, 0, hashes.length + 10)
  expect(entries.map(({ seq }) => seq)).toEqual(hashes.map((_, i) => i))
  expect(entries.map(({ hash }) => hash)).toEqual(hashes)
  for (const { hash } of entries) expect(denied.has(hash)).toBe(false)
}

async function failure(promise: Promise<unknown>) {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!isHoldfastError(error)) throw new Error(`no typed error: ${String(error)}`)
  return error
}

/** Tries until the store answers again. */
async function recovers<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (!isHoldfastError(error, 'unavailable')) throw error
      await sleep(20)
    }
  }
}

/** Until so many statements on this schema wait for a lock. */
async function untilWaiting(schema: string, count = 1): Promise<void> {
  const waiting = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"${schema}".%'`
  await until(async () => (await runSql(url, waiting))[0]?.['n'] === count)
}

/** What has come in by now is handled: also on a process that stood still, whose timers go first. */
async function eventsHandled(): Promise<void> {
  await sleep(50)
  for (let i = 0; i < 5; i++) await new Promise(setImmediate)
}

describe.skipIf(given === undefined)('Postgres under faults', () => {
  afterEach(() => dropSchema(url, ...schemas.splice(0)))

  it('loses no acknowledgement and doubles nothing while sessions are terminated at random', {
    timeout: 600_000,
  }, async () => {
    const schema = schemaName()
    const applicationName = `victim-${schema}`
    const driver = await openPostgres(url, { schema, applicationName, poolSize: 6 })
    const tenant = newTenant()
    let over = false
    const counts = Array.from({ length: 6 }, noCounts)
    const killer = new pg.Client(url)
    await killer.connect()
    const killing = (async () => {
      let killed = 0
      const isRejected = () => counts.some(({ unknown, nothing }) => unknown + nothing > 0)
      // Most kills come in the middle of a statement. Where none did, nothing was shown.
      while (killed < rounds(60, 600) || !isRejected()) {
        const { rowCount } = await killer.query(
          'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 ORDER BY random() LIMIT 1',
          [applicationName],
        )
        killed += rowCount ?? 0
        await sleep(Math.random() * 20)
      }
      over = true
    })()
    const writers = counts.map((each, i) => writeUntil(driver, logKey(tenant, `w${i}`), () => over, each))
    const written = await Promise.all(writers)
    await killing
    await killer.end()
    for (const each of written) await expectExactly(driver, each)
    await driver.close()
  })

  it('keeps every acknowledged append over an immediate stop and restart in mid-append', {
    timeout: 600_000,
  }, async () => {
    const server = await startPostgres()
    try {
      const driver = await openPostgres(server.url, { connectTimeoutMs: 2000, statementTimeoutMs: 2000 })
      const tenant = newTenant()
      let over = false
      const counts = Array.from({ length: 4 }, noCounts)
      const writers = counts.map((each, i) => writeUntil(driver, logKey(tenant, `w${i}`), () => over, each))
      const writing = Promise.all(writers)
      /** Each of them has been told of more that landed. */
      const progress = () => {
        const before = counts.map(({ acknowledged }) => acknowledged)
        return until(() => counts.every(({ acknowledged }, i) => acknowledged > (before[i] as number)))
      }
      for (let round = 0; round < rounds(2, 10); round++) {
        await Promise.race([progress(), writing])
        await sleep(Math.random() * 200)
        await server.restart({ immediate: true })
      }
      await Promise.race([progress(), writing])
      over = true
      for (const each of await writing) await expectExactly(driver, each)
      await driver.close()
    } finally {
      await server.stop()
    }
  })

  it('leaves connections that lead to a read-only server, as after a failover', async () => {
    const schema = schemaName()
    await (await openPostgres(url, { schema })).close()
    // Sessions of this role keep what it was set to when they began, as those to a demoted primary stay there.
    const role = `role_${schema}`
    const readOnly = `ALTER ROLE ${role} SET default_transaction_read_only = on`
    const writable = `ALTER ROLE ${role} RESET default_transaction_read_only`
    await runSql(
      url,
      `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`,
      `GRANT USAGE ON SCHEMA ${schema} TO ${role}`,
      `GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO ${role}`,
      readOnly,
    )
    try {
      const own = new URL(url)
      own.username = role
      own.password = 'secret'
      const driver = await openPostgres(own.href, { schema, poolSize: 3 })
      const tenant = newTenant()
      const logs = ['a', 'b', 'c'].map((name) => logKey(tenant, name))
      const refusals = await Promise.all(logs.map((log) => failure(driver.append([makeAppend(log, null)]))))
      for (const refused of refusals) {
        expect(refused).toMatchObject({ code: 'unavailable', retryable: true })
        expect(refused.data).toMatchObject({ reason: 'read-only', written: 'nothing' })
      }
      const transacted = driver.transact?.(async () => makeAppend(logs[0] as LogKey, null), { timeoutMs: 5000 })
      expect((await failure(transacted as Promise<unknown>)).data['reason']).toBe('read-only')

      // Idle connections that never wrote anything are of that time too.
      await Promise.all(logs.map((log) => driver.head(log)))
      await runSql(url, writable)
      expect((await failure(driver.append([makeAppend(logs[0] as LogKey, null)]))).retryable).toBe(true)
      for (const log of logs) await createLog(driver, log)
      await driver.close()
    } finally {
      await runSql(url, `DROP OWNED BY ${role}`, `DROP ROLE ${role}`)
    }
  })

  it('names a head that holds no JSON where it should as damage', async () => {
    const schema = schemaName()
    const driver = await openPostgres(url, { schema })
    const log = logKey(newTenant(), 't')
    await createLog(driver, log)
    await runSql(url, `UPDATE ${schema}.logs SET metadata = '{'`)
    expect(await failure(driver.head(log))).toMatchObject({ code: 'corrupt', data: { reason: 'head', log } })
    await driver.close()
  })

  it('says that nothing was written after a serialization failure, and that is true', async () => {
    const schema = schemaName()
    const plain = new pg.Pool({ connectionString: url, max: 2 })
    const serializable = new pg.Pool({
      connectionString: url,
      max: 8,
      options: '-c default_transaction_isolation=serializable',
    })
    // The sessions change behind our back, after opening has looked at them.
    let current = plain
    const driver = await openPostgres({ pool: { connect: () => current.connect() } }, { schema })
    current = serializable
    const log = logKey(newTenant())
    await createLog(driver, log)
    const landed = new Set<string>()
    const race = async () => {
      for (let i = 0; i < rounds(60, 600); i++) {
        const head = await driver.head(log)
        const append = makeAppend(log, head ?? null)
        try {
          const [result] = await driver.append([append])
          if (result.status === 'appended') landed.add(append.entries[0].hash)
        } catch (error) {
          if (!isHoldfastError(error, 'unavailable')) throw error
          expect(error.data).toMatchObject({ written: 'nothing', sqlstate: '40001' })
        }
      }
    }
    await Promise.all([race(), race(), race(), race()])
    // Whether any of those met in the middle is up to the machine. This one does: it has begun, and waits for the row
    // that another changes.
    const other = new pg.Client(url)
    await other.connect()
    await other.query('BEGIN')
    await other.query(`UPDATE "${schema}".logs SET status = status WHERE tenant = $1`, [log.tenant])
    const head = await driver.head(log)
    const waiting = failure(driver.append([makeAppend(log, head ?? null)]))
    await untilWaiting(schema)
    await other.query('COMMIT')
    await other.end()
    expect((await waiting).data).toMatchObject({ written: 'nothing', sqlstate: '40001' })
    const entries = await driver.read(log, 1, landed.size + 10)
    expect(new Set(entries.map(({ hash }) => hash))).toEqual(landed)
    await driver.close()
    await plain.end()
    await serializable.end()
  })

  it.each(['serializable', 'repeatable read'])(
    'turns conflicts into answers also where sessions are %s',
    async (isolation) => {
      const pool = new pg.Pool({
        connectionString: url,
        max: 6,
        options: `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`,
      })
      const shared = await openPostgres({ pool }, { schema: schemaName() })
      const own = await openPostgres(
        `${url}${url.includes('?') ? '&' : '?'}options=-c%20default_transaction_isolation%3D${isolation.replace(' ', '%5C%20')}`,
        {
          schema: schemas[0],
        },
      )
      for (const driver of [shared, own]) {
        const log = logKey(newTenant())
        await createLog(driver, log)
        for (let i = 0; i < rounds(20, 200); i++) {
          const head = await driver.head(log)
          const results = await Promise.all(
            Array.from({ length: 4 }, () => driver.append([makeAppend(log, head ?? null)])),
          )
          expect(
            results
              .flat()
              .map(({ status }) => status)
              .sort(),
          ).toEqual(['appended', 'conflict', 'conflict', 'conflict'])
        }
        await driver.close()
      }
      await pool.end()
    },
  )

  it('says that nothing was written when it had to give way in a deadlock', async () => {
    const schema = schemaName()
    const driver = await openPostgres(url, { schema })
    const tenant = newTenant()
    const logs = ['a', 'b', 'c'].map((thread) => logKey(tenant, thread))
    const heads: Expect[] = []
    for (const log of logs) heads.push(await createLog(driver, log))
    const [first, second] = [new pg.Client(url), new pg.Client(url)]
    for (const client of [first, second]) {
      await client.connect()
      // Whoever looks for a deadlock gives way. These two never do; the driver looks a second after it began to wait.
      await client.query("SET deadlock_timeout = '1h'")
      await client.query('BEGIN')
    }
    const lock = (client: pg.Client, thread: string) =>
      client.query(`UPDATE "${schema}".logs SET status = status WHERE tenant = $1 AND thread = $2`, [tenant, thread])
    await lock(first, 'b')
    await lock(second, 'c')
    const batch = logs.map((log, i) => makeAppend(log, heads[i] as Expect))
    const appending = failure(driver.append(batch))
    // The batch holds `a` and waits for `b`; the second waits for `a`; and when the first lets go of `b`, the batch
    // waits for `c`: its wait is the last, and closes the circle.
    await untilWaiting(schema)
    const locking = lock(second, 'a')
    await untilWaiting(schema, 2)
    await first.query('ROLLBACK')
    const error = await appending
    expect(error.code).toBe('unavailable')
    expect(error.data).toMatchObject({ written: 'nothing', sqlstate: '40P01' })
    await locking
    await second.query('ROLLBACK')
    for (const client of [first, second]) await client.end()
    for (const log of logs) expect((await driver.head(log))?.seq).toBe(0)
    expect(await driver.append(batch)).toEqual(logs.map(() => ({ status: 'appended' })))
    await driver.close()
  })

  it('never deadlocks when batches over the same logs cross, creations among them', async () => {
    const schema = schemaName()
    const drivers = await Promise.all([openPostgres(url, { schema }), openPostgres(url, { schema })])
    const tenant = newTenant()
    const shuffled = <T>(items: T[]) =>
      items
        .map((item) => [Math.random(), item] as const)
        .sort(([x], [y]) => x - y)
        .map(([, item]) => item)
    for (let round = 0; round < rounds(15, 150); round++) {
      const logs = Array.from({ length: 12 }, (_, i) => logKey(tenant, `r${round}-${i}`))
      await Promise.all(
        Array.from({ length: 6 }, async (_, n) => {
          const driver = drivers[n % 2]
          const known = await Promise.all(logs.map((log) => driver.head(log)))
          const batch = logs.map((log, i) => makeAppend(log, known[i] ?? null))
          const results = await driver.append(shuffled(batch))
          // A second batch right behind: some appends follow, others create what is already there.
          const next = logs.map((log, i) =>
            makeAppend(log, i % 3 === 0 ? null : results[i].status === 'appended' ? expectAfter(batch[i]) : null),
          )
          await driver.append(shuffled(next))
        }),
      )
    }
    await Promise.all(drivers.map((driver) => driver.close()))
  })

  describe('behind a failing network', () => {
    async function throughProxy(
      run: (context: {
        driver: Driver
        direct: Driver
        proxy: Awaited<ReturnType<typeof startChaosProxy>>
      }) => Promise<void>,
      // Only where it has to run out is it short.
      timeoutMs = 60_000,
    ) {
      const { hostname, port } = new URL(url)
      const schema = schemaName()
      const proxy = await startChaosProxy({ target: { host: hostname, port: Number(port || 5432) } })
      const direct = await openPostgres(url, { schema })
      const timeouts = { connectTimeoutMs: timeoutMs, statementTimeoutMs: timeoutMs }
      const driver = await recovers(() => openPostgres(proxy.url(url), { schema, poolSize: 3, ...timeouts }))
      try {
        await run({ driver, direct, proxy })
      } finally {
        await proxy.heal()
        await driver.close()
        await direct.close()
        await proxy.close()
      }
    }

    it('finds out that an append landed whose acknowledgement was lost', () =>
      throughProxy(async ({ driver, direct, proxy }) => {
        const log = logKey(newTenant())
        const head = await createLog(driver, log)
        const lost = proxy.dropAfterRequest(1, {
          when: (request) => request.includes('append') || request.includes('hf_append'),
        })
        const append = makeAppend(log, head)
        const error = await failure(driver.append([append]))
        expect(await lost).toBe(1)
        expect(error.code).toBe('unavailable')
        expect(error.data).toMatchObject({ written: 'unknown' })
        await recovers(async () => expect((await driver.head(log))?.hash).toBe(append.entries[0].hash))
        // The same append again conflicts with itself.
        const [again] = await recovers(() => direct.append([append]))
        expect(again).toMatchObject({ status: 'conflict', head: { hash: append.entries[0].hash } })
      }))

    it.each(['cut', 'reset'] as const)('reads again on a fresh connection after a %s', (fault) =>
      throughProxy(async ({ driver, proxy }) => {
        const log = logKey(newTenant())
        const head = await createLog(driver, log)
        // All of the pool has been used.
        await Promise.all([driver.head(log), driver.head(log), driver.head(log)])
        proxy[fault]()
        expect((await driver.head(log))?.hash).toBe(head.hash)
      }),
    )

    it('gives up in time while nothing gets through, and recovers by itself', () =>
      throughProxy(async ({ driver, direct, proxy }) => {
        const log = logKey(newTenant())
        const head = await createLog(direct, log)
        await recovers(() => driver.head(log))
        proxy.stall()
        const append = makeAppend(log, head)
        expect((await failure(driver.append([append]))).data).toMatchObject({
          written: 'unknown',
          reason: 'statement-timeout',
        })
        expect((await failure(driver.append([append]))).data).toMatchObject({ written: 'nothing' })
        expect((await failure(driver.head(log))).code).toBe('unavailable')
        await proxy.heal()
        // Whatever became of it, it is there at most once, and the log goes on.
        await recovers(async () => {
          for (;;) {
            const end = await driver.head(log)
            expect([head.hash, append.entries[0].hash]).toContain(end?.hash)
            const [result] = await direct.append([makeAppend(log, end ?? null)])
            if (result?.status === 'appended') return
            // What was stalled has landed since the look.
            expect(end?.hash).toBe(head.hash)
          }
        })
      }, 2000))

    it('pays one timeout, not one per connection, when the server forgot all of them', () =>
      throughProxy(async ({ driver, proxy }) => {
        const log = logKey(newTenant())
        const head = await createLog(driver, log)
        await Promise.all([driver.head(log), driver.head(log), driver.head(log)])
        proxy.halfOpen()
        const append = makeAppend(log, head)
        expect((await failure(driver.append([append]))).data).toMatchObject({
          written: 'unknown',
          reason: 'statement-timeout',
        })
        expect(await driver.append([append])).toEqual([{ status: 'appended' }])
      }, 6000))

    it('says that nothing was written when no connection is to be had', () =>
      throughProxy(async ({ driver, proxy }) => {
        const log = logKey(newTenant())
        const head = await createLog(driver, log)
        await proxy.refuse()
        proxy.reset()
        await eventsHandled()
        const error = await failure(driver.append([makeAppend(log, head)]))
        expect(error.code).toBe('unavailable')
        expect(error.data).toMatchObject({ written: 'nothing' })
        await proxy.heal()
        expect(await recovers(() => driver.append([makeAppend(log, head)]))).toEqual([{ status: 'appended' }])
      }))

    it('loses and doubles nothing under faults at random', { timeout: 600_000 }, () =>
      throughProxy(async ({ driver, direct, proxy }) => {
        const tenant = newTenant()
        let over = false
        const writers = Array.from({ length: 3 }, (_, i) => writeUntil(driver, logKey(tenant, `w${i}`), () => over))
        const faults = proxy.randomFaults(7)
        await sleep(rounds(4000, 20_000))
        await faults.stop()
        await proxy.heal()
        over = true
        for (const each of await Promise.all(writers)) await expectExactly(direct, each)
      }, 2000),
    )

    it('hears again what others publish after its connection broke, and that some was missed', () =>
      throughProxy(async ({ driver, direct, proxy }) => {
        const heard: (string | undefined)[] = []
        await driver.subscribe?.('topic', (message) => heard.push(message))
        const log = logKey(newTenant())
        let head = await createLog(direct, log)
        const publishUntilHeard = async (message: string) => {
          while (!heard.includes(message)) {
            // A writer learns by an append that somebody listens.
            head = await mustAppend(direct, makeAppend(log, head))
            direct.publish?.('topic', message)
            await sleep(20)
          }
        }
        await publishUntilHeard('before')
        proxy.reset()
        await publishUntilHeard('after')
        // Told before anything that came later, or whoever listens would take what it has for all there is.
        expect(heard.indexOf(undefined)).toBeGreaterThanOrEqual(0)
        expect(heard.indexOf(undefined)).toBeLessThan(heard.indexOf('after'))
      }))

    it('tells those who listened that some was missed, also when the next one who listens brings the connection back', () =>
      throughProxy(async ({ driver, proxy }) => {
        const heard: (string | undefined)[] = []
        await driver.subscribe?.('topic', (message) => heard.push(message))
        proxy.reset()
        const listenToo = () => driver.subscribe?.('another topic', () => {}).catch(() => undefined)
        await until(async () => (await listenToo()) !== undefined)
        await until(() => heard.includes(undefined))
      }))
  })
})
