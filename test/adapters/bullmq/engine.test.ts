import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { openBullmq, startJob } from 'holdfast/bullmq'
import { openHoldfast } from 'holdfast'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { startRedis } from '../../../scripts/services/index.mjs'
import { collect } from '../../cli/command.js'
import { orUndefined } from '../../support/servers.js'
import { until } from '../../support/until.js'
import { countedProgram, fresh, heldProgram, openScene, queues } from './bullmq-setup.js'

const redis = queues.find(({ name, missing }) => name === 'Redis' && !missing)?.connection
const disposable = (client: Redis) =>
  Object.assign(client, { [Symbol.asyncDispose]: async () => void (await client.quit()) })
const quiet = { handleSignals: false } as const
const hintOf = (thread: string) => ({ tenant: 'default', thread, branch: 'main' })

describe.each(queues.filter(({ missing }) => !missing))('BullMQ on $name as the engine', ({ connection }) => {
  it('runs threads that its jobs name, and shows what became of them without what they hold', async () => {
    const { hf, engine, errors } = await openScene({ connection })
    const { program, calls } = countedProgram()
    const worker = engine.worker({ programs: [program], ...quiet })
    for (const id of ['a', 'b', 'c']) await hf.thread(program, id).enqueue(id)
    for (const id of ['a', 'b', 'c']) {
      expect(await hf.thread(program, id).waitFor()).toMatchObject({ status: 'completed', output: id })
    }
    expect(calls.toSorted()).toEqual(['a', 'b', 'c'])
    await until(async () => (await engine.queue.getJobCounts('completed'))['completed'] === 3)
    const jobs = await engine.queue.getCompleted()
    expect(jobs.map(({ name, returnvalue }) => [name, returnvalue])).toEqual(
      jobs.map(() => ['counted', { status: 'completed' }]),
    )
    expect(worker.status).toMatchObject({ state: 'running', programs: [{ name: 'counted' }] })
    expect(errors).toEqual([])
  })

  it('has one job for a thread that waits, however often it is told of it', async () => {
    const { hf, engine } = await openScene({ connection })
    const { program, calls } = countedProgram()
    await hf.thread(program, 't').enqueue('t')
    for (let i = 0; i < 3; i++) await engine.hint([{ ...hintOf('t'), program: 'counted', priority: 0 }])
    expect(await engine.queue.getJobCountByTypes('wait')).toBe(1)
    engine.worker({ programs: [program], ...quiet })
    expect(await hf.thread(program, 't').waitFor()).toMatchObject({ status: 'completed' })
    expect(calls).toEqual(['t'])
  })

  it('survives jobs that are doubled, removed, made up or for nobody', async () => {
    const { hf, engine } = await openScene({ connection, reconcileMs: 200 })
    const { program, calls } = countedProgram()
    const dispatcher = engine.dispatch({ programs: [program] })
    await hf.thread(program, 'removed').enqueue('removed')
    const waiting = () => engine.queue.getJobs(['wait'])
    await until(async () => (await waiting()).length === 1)
    for (const job of await waiting()) await job.remove()
    // Doubled behind the back of the engine, without its deduplication.
    await hf.thread(program, 'doubled').enqueue('doubled')
    for (let i = 0; i < 5; i++) await engine.queue.add('counted', hintOf('doubled'))
    await engine.queue.add('counted', hintOf('nobody'))
    const wrong = await engine.queue.add('counted', { tenant: '', thread: '', branch: '' })
    const lost = await engine.queue.add('gone', startJob('gone', 1).data)
    engine.worker({ programs: [program], dispatch: false, concurrency: 3, ...quiet })
    for (const id of ['removed', 'doubled']) {
      expect(await hf.thread(program, id).waitFor()).toMatchObject({ status: 'completed', output: id })
    }
    await until(async () => (await engine.queue.getJobCounts('failed'))['failed'] === 2)
    const failed = await engine.queue.getFailed()
    expect(failed.map(({ id }) => id).toSorted()).toEqual([wrong.id, lost.id].toSorted())
    expect(failed.map(({ failedReason }) => failedReason).join()).toContain('"gone", which this worker does not have')
    await until(async () => (await engine.queue.getJobCountByTypes('wait', 'active')) === 0)
    expect(calls.toSorted()).toEqual(['doubled', 'removed'])
    await dispatcher.stop()
  })

  it('leaves a thread to who runs it when its job stalls, and never fails it', async () => {
    const { hf, engine } = await openScene({ connection })
    const { program, begun, open, calls } = heldProgram()
    // A lock that is not renewed, as by a process whose event loop is blocked: the job counts as stalled.
    const bull = { lockDuration: 300, stalledInterval: 200, skipLockRenewal: true }
    const slow = engine.worker({ programs: [program], bull, leaseMs: 60_000, ...quiet })
    await hf.thread(program, 't').enqueue('t')
    await begun.passed
    const other = engine.worker({ programs: [program], bull, dispatch: false, ...quiet })
    // Whichever of them gets the job once more.
    const held: unknown[] = []
    for (const { bull } of [slow, other]) bull.on('completed', (job) => held.push(job.returnvalue))
    await until(() => held.length > 0)
    expect(held[0]).toEqual({ status: 'held' })
    expect((await hf.threads({ thread: 't' })).threads).toMatchObject([{ status: 'active' }])
    open.open()
    expect(await hf.thread(program, 't').waitFor()).toMatchObject({ status: 'completed' })
    expect(calls).toEqual(['t'])
  })

  it('leaves a job for what it lets go of when it stops', async () => {
    const { hf, engine } = await openScene({ connection, reconcileMs: 3_600_000 })
    const { program, begun, open, calls } = heldProgram()
    const first = engine.worker({ programs: [program], graceMs: 1, leaseMs: 3_600_000, ...quiet })
    await hf.thread(program, 't').enqueue('t')
    await begun.passed
    await first.stop()
    expect((await hf.threads({ thread: 't' })).threads).toMatchObject([{ status: 'active', claimedBy: null }])
    expect(await engine.queue.getJobCountByTypes('wait', 'active')).toBe(1)
    open.open()
    engine.worker({ programs: [program], dispatch: false, ...quiet })
    expect(await hf.thread(program, 't').waitFor()).toMatchObject({ status: 'completed' })
    expect(calls).toEqual(['t', 't'])
  })

  it('lets what becomes due during a run have a job of its own', async () => {
    const { hf, engine } = await openScene({ connection, reconcileMs: 3_600_000 })
    const { program, begun, open, calls } = heldProgram()
    engine.worker({ programs: [program], ...quiet })
    const thread = hf.thread(program, 't')
    await thread.enqueue('first')
    await begun.passed
    await thread.enqueue('second')
    open.open()
    await until(async () => calls.length === 2 && (await thread.waitFor()).status === 'completed')
    expect(calls).toEqual(['first', 'second'])
  })

  it('keeps what BullMQ can do: priorities, and schedulers whose occurrences start threads once', async () => {
    const jobOptions = ({ thread }: { readonly thread: unknown }) => ({ priority: thread === 'urgent' ? 1 : 10 })
    const { hf, engine } = await openScene({ connection, jobOptions })
    const { program, calls } = countedProgram()
    const dispatcher = engine.dispatch({ programs: [program] })
    const ids = ['one', 'two', 'urgent']
    for (const id of ids) await hf.thread(program, id).enqueue(id)
    await until(async () => (await engine.queue.getJobCountByTypes('prioritized', 'wait')) === 3)
    engine.worker({ programs: [program], dispatch: false, concurrency: 1, ...quiet })
    for (const id of ids) await hf.thread(program, id).waitFor()
    expect(calls[0]).toBe('urgent')

    const { name, data } = startJob(program, 'nightly', { tenant: 'acme' })
    const job = await engine.queue.upsertJobScheduler('nightly', { every: 3_600_000 }, { name, data })
    const id = job?.id as string
    const acme = hf.tenant('acme')
    await until(async () => (await acme.threads({ thread: id })).threads.length === 1)
    expect(await acme.thread(program, id).waitFor()).toMatchObject({ status: 'completed', output: 'nightly' })
    // The same job again, as when its worker died before it could say that it was done.
    await engine.queue.add(name, data, { jobId: 'again' })
    const again = acme.thread(program, 'again')
    await until(async () => (await acme.threads({ thread: 'again' })).threads.length === 1)
    expect(await again.waitFor()).toMatchObject({ status: 'completed' })
    expect(calls.filter((input) => input === 'nightly')).toHaveLength(2)
    await dispatcher.stop()
  })

  it('stops with the store, and leaves the queue as it is', async () => {
    const hf = await openHoldfast('memory:')
    const engine = await openBullmq(hf, { connection, queue: fresh() })
    const { program } = countedProgram()
    const worker = engine.worker({ programs: [program], ...quiet })
    await hf.close()
    await worker.done()
    expect(worker.status.state).toBe('draining')
    await engine.close()
  })
})

describe('BullMQ as the engine', () => {
  it.skipIf(redis === undefined)('leaves a client that it was given connected', async () => {
    await using client = disposable(new Redis(redis ?? '', { maxRetriesPerRequest: null }))
    const { hf, engine } = await openScene({ connection: client })
    const { program } = countedProgram()
    const worker = engine.worker({ programs: [program], ...quiet })
    await hf.thread(program, 'a').enqueue('a')
    await hf.thread(program, 'a').waitFor()
    await worker.stop()
    expect(client.status).toBe('ready')
    expect(await client.ping()).toBe('PONG')
    await expect(engine.queue.getJobCounts('completed')).resolves.toBeDefined()
  })

  it('goes on by itself after its Redis was away and came back with nothing', { timeout: 600_000 }, async () => {
    const redis = await orUndefined(() => startRedis())
    if (redis === undefined) return
    try {
      const { hf, engine, errors } = await openScene({ connection: redis.url, reconcileMs: 500 })
      const { program, begun, open, calls } = heldProgram()
      engine.worker({ programs: [program], ...quiet })
      await hf.thread(program, 'under way').enqueue('under way')
      await begun.passed
      await redis.kill()
      await hf.thread(program, 'meanwhile').enqueue('meanwhile')
      // What runs does not need the queue.
      open.open()
      expect(await hf.thread(program, 'under way').waitFor()).toMatchObject({ status: 'completed' })
      await redis.restart({ wipe: true })
      expect(await hf.thread(program, 'meanwhile').waitFor()).toMatchObject({ status: 'completed' })
      expect(calls).toEqual(['under way', 'meanwhile'])
      expect(errors).not.toEqual([])
      await engine.close()
    } finally {
      await redis.stop()
    }
  })

  it('refuses an address that it does not know, without repeating a password', async () => {
    await using hf = await openHoldfast('memory:')
    await expect(openBullmq(hf, { connection: 'amqp://user:secret@host' })).rejects.toThrow(
      expect.objectContaining({ code: 'invalid-option', message: expect.not.stringContaining('secret') }),
    )
  })

  it('says what to install where BullMQ is not', async () => {
    const hooks = `export const resolve = (name, context, next) => {
      if (name !== 'bullmq') return next(name, context)
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
    }`
    const program = `import { register } from 'node:module'
      import { openHoldfast } from 'holdfast'
      import { openBullmq } from 'holdfast/bullmq'
      register('data:text/javascript,${encodeURIComponent(hooks).replaceAll("'", '%27')}')
      const hf = await openHoldfast('memory:')
      await openBullmq(hf, { connection: 'redis://localhost' }).catch((error) => console.log(error.code, error.remedy))
      await hf.close()`
    const cwd = fileURLToPath(new URL('../../..', import.meta.url))
    const args = ['--input-type=module', '-e', program]
    expect(await collect(spawn(process.execPath, args, { cwd }))).toMatchObject({
      code: 0,
      out: 'missing-dependency Run: npm install bullmq\n',
    })
  })
})
