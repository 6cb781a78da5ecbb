import { type Checkpoint, type CheckpointTuple, INTERRUPT, MemorySaver, uuid6 } from '@langchain/langgraph-checkpoint'
import fc from 'fast-check'
import { openHoldfast } from 'holdfast'
import { HoldfastSaver } from 'holdfast/langgraph'
import { afterAll, describe, expect, it } from 'vitest'
import { randomly, rounds } from '../../support/scale.js'
import { all, type At, backends, cleanUp, loop } from './support.js'

const THREADS = ['a', 'b']
const NAMESPACES = ['', 'child']

/** What a step does to the values of its parent. */
const edit = fc.record({
  push: fc.array(fc.constantFrom<unknown>('x', 'y', { n: 1 }, { n: 2 }, null), { maxLength: 2 }),
  drop: fc.nat(3),
  set: fc.dictionary(fc.constantFrom('k', 'm'), fc.constantFrom<unknown>(1, 2, 'two', { deep: [1] }, { deep: [2] }), {
    maxKeys: 2,
  }),
  remove: fc.constantFrom(undefined, 'map', 'list'),
})

const command = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant('put' as const),
      thread: fc.nat(1),
      ns: fc.nat(1),
      parent: fc.nat(),
      edit,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('write' as const),
      at: fc.nat(),
      task: fc.constantFrom('t1', 't2'),
      channels: fc.array(fc.constantFrom('list', 'other', INTERRUPT), { minLength: 1, maxLength: 3 }),
      value: fc.nat(9),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('delete' as const), thread: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('forget' as const), saver: fc.nat(1) }) },
)

interface Known {
  readonly at: At
  readonly checkpoint: Checkpoint
}

/** The checkpoint after another, with new versions for the channels that changed. */
function follow(
  parent: Known | undefined,
  change: { push: unknown[]; drop: number; set: object; remove?: string | undefined },
) {
  const values = structuredClone(parent?.checkpoint.channel_values ?? {}) as { list?: unknown[]; map?: object }
  const versions = { ...parent?.checkpoint.channel_versions } as Record<string, number>
  const next: Record<string, number> = {}
  const touch = (channel: string): void => {
    next[channel] = versions[channel] = (versions[channel] ?? 0) + 1
  }
  if (change.push.length > 0 || change.drop === 1) {
    const kept = (values.list ?? []).slice(change.drop === 1 ? 1 : 0)
    values.list = [...kept, ...change.push]
    touch('list')
  }
  if (Object.keys(change.set).length > 0) {
    values.map = { ...values.map, ...change.set }
    touch('map')
  }
  if (change.remove === 'map' || change.remove === 'list') {
    delete values[change.remove]
    touch(change.remove)
  }
  const checkpoint: Checkpoint = {
    v: 4,
    id: uuid6(0),
    ts: new Date().toISOString(),
    channel_values: values,
    channel_versions: versions,
    versions_seen: parent ? { node: { ...parent.checkpoint.channel_versions } } : {},
  }
  return { checkpoint, next }
}

// MemorySaver lists thread by thread; that both hold the same is what is compared.
function byId(tuples: readonly CheckpointTuple[]): CheckpointTuple[] {
  return [...tuples].sort((a, b) => (a.checkpoint.id < b.checkpoint.id ? 1 : -1))
}

for (const backend of backends.filter(({ name }) => ['memory', 'SQLite', 'Postgres'].includes(name))) {
  describe.skipIf(backend.missing)(`HoldfastSaver on ${backend.name}, against MemorySaver`, () => {
    it('holds the same after anything that two processes do', async () => {
      await using hf = await openHoldfast(await backend.fresh())
      let tenants = 0
      await fc.assert(
        fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 40 }), async (commands) => {
          const tenant = `run-${tenants++}`
          const model = new MemorySaver()
          const savers = [0, 1].map(() => new HoldfastSaver(hf, { tenant, openBranches: 3 }))
          let known: Known[] = []
          for (const [i, one] of commands.entries()) {
            const saver = savers[i % 2] as HoldfastSaver
            if (one.type === 'put') {
              const config = { thread_id: THREADS[one.thread] as string, checkpoint_ns: NAMESPACES[one.ns] as string }
              const mine = known.filter(
                ({ at: { configurable: at } }) =>
                  at.thread_id === config.thread_id && at.checkpoint_ns === config.checkpoint_ns,
              )
              // One more than there are: sometimes a checkpoint has no parent.
              const parent = mine[mine.length - (one.parent % (mine.length + 1))]
              const { checkpoint, next } = follow(parent, one.edit)
              const from = parent?.at ?? { configurable: config }
              await model.put(from, structuredClone(checkpoint), loop(i))
              const at = (await saver.put(from, structuredClone(checkpoint), loop(i), next)) as At
              known.push({ at, checkpoint })
            } else if (one.type === 'write' && known.length > 0) {
              const { at } = known[one.at % known.length] as Known
              const writes = one.channels.map((channel, n): [string, unknown] => [channel, one.value + n])
              await model.putWrites(at, writes, one.task)
              await saver.putWrites(at, writes, one.task)
            } else if (one.type === 'delete') {
              await model.deleteThread(THREADS[one.thread] as string)
              await saver.deleteThread(THREADS[one.thread] as string)
              known = known.filter(({ at }) => at.configurable.thread_id !== THREADS[one.thread])
            } else if (one.type === 'forget') {
              savers[one.saver] = new HoldfastSaver(hf, { tenant })
            }
          }
          for (const saver of savers) {
            expect(await all(saver.list({}))).toEqual(byId(await all(model.list({}))))
            for (const thread_id of THREADS) {
              for (const checkpoint_ns of NAMESPACES) {
                const config = { configurable: { thread_id, checkpoint_ns } }
                expect(await saver.getTuple(config)).toEqual(await model.getTuple(config))
              }
            }
          }
          for (const { at } of known) {
            const [saver] = savers as [HoldfastSaver]
            expect(await saver.getTuple(at)).toEqual(await model.getTuple(at))
            const asked = { config: at, channels: ['list', 'other'] }
            expect(await saver.getDeltaChannelHistory(asked)).toEqual(await model.getDeltaChannelHistory(asked))
          }
        }),
        randomly(rounds(backend.name === 'memory' ? 60 : 10)),
      )
    })
  })
}

afterAll(cleanUp)
