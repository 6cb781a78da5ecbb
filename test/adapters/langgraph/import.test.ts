import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AIMessage, HumanMessage } from '@langchain/core/messages'
import type { RunnableConfig } from '@langchain/core/runnables'
import { Annotation, Command, END, interrupt, MessagesAnnotation, Send, START, StateGraph } from '@langchain/langgraph'
import type { BaseCheckpointSaver, CheckpointTuple } from '@langchain/langgraph-checkpoint'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import { DatabaseSync } from '@photostructure/sqlite'
import { type Holdfast, openHoldfast } from 'holdfast'
import { HoldfastSaver, importLangGraph } from 'holdfast/langgraph'
import { afterAll, describe, expect, it } from 'vitest'
import { holdfast } from '../../cli/command.js'
import { postgresUrl } from '../../support/servers.js'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-import-langgraph-'))
const postgres = await postgresUrl()
const opened: Holdfast[] = []
const closing: (() => Promise<void> | void)[] = []
afterAll(async () => {
  for (const close of closing) await close()
  await Promise.all(opened.map((hf) => hf.close()))
  rmSync(folder, { recursive: true, force: true })
})

let count = 0

/** The official saver over Node's SQLite: it only asks its client for what both have, and these three. */
function sqlite(): { readonly url: string; readonly saver: BaseCheckpointSaver } {
  const path = join(folder, `${count++}.db`)
  const db = new DatabaseSync(path)
  closing.push(() => db.close())
  const client = {
    exec: (sql: string) => db.exec(sql),
    prepare: (sql: string) => {
      const statement = db.prepare(sql)
      const plain = (values: unknown[]) => values.map((value) => value ?? null) as never[]
      return {
        get: (...values: unknown[]) => statement.get(...plain(values)) ?? undefined,
        all: (...values: unknown[]) => statement.all(...plain(values)),
        run: (...values: unknown[]) => statement.run(...plain(values)),
      }
    },
    pragma: (text: string) => db.exec(`PRAGMA ${text}`),
    transaction:
      (work: (...args: unknown[]) => unknown) =>
      (...args: unknown[]) => {
        db.exec('BEGIN')
        const result = work(...args)
        db.exec('COMMIT')
        return result
      },
  }
  return { url: `sqlite:${path}`, saver: new SqliteSaver(client as never) }
}

async function official(): Promise<{ readonly url: string; readonly saver: BaseCheckpointSaver }> {
  const schema = `lg_${process.pid}_${Date.now().toString(36)}_${count++}`
  const saver = PostgresSaver.fromConnString(postgres as string, { schema })
  await saver.setup()
  closing.push(() => saver.end())
  const url = new URL(postgres as string)
  url.searchParams.set('schema', schema)
  return { url: url.href, saver }
}

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
  at: Annotation<Date>(),
})

/** A graph with fan-out, a subgraph that asks inside, and a question of its own. */
function build(checkpointer: BaseCheckpointSaver) {
  const inner = new StateGraph(State)
    .addNode('look', () => ({ log: ['looked'] }))
    .addNode('ask', () => ({ log: [`inner:${interrupt({ ask: 'inner?' })}`] }))
    .addEdge(START, 'look')
    .addEdge('look', 'ask')
    .addEdge('ask', END)
    .compile()
  return new StateGraph(State)
    .addNode('begin', () => ({ messages: [new AIMessage('hello')], at: new Date(5), log: ['begun'] }))
    .addNode('item', (input: { n: number }) => ({ log: [`item ${input.n}`] }))
    .addNode('inner', inner)
    .addNode('ask', () => ({ log: [`outer:${interrupt({ ask: 'outer?' })}`] }))
    .addNode('end', () => ({ log: ['ended'] }))
    .addEdge(START, 'begin')
    .addConditionalEdges('begin', () => [1, 2].map((n) => new Send('item', { n })), ['item'])
    .addEdge('item', 'inner')
    .addEdge('inner', 'ask')
    .addEdge('ask', 'end')
    .addEdge('end', END)
    .compile({ checkpointer })
}

const on = (id: string): RunnableConfig => ({ configurable: { thread_id: id } })
const input = { messages: [new HumanMessage('hi')] }

/** A question is named after the checkpoint that it is asked at, which is made anew on each side. */
function withoutIds(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (name, inner) => (name === '__interrupt__' ? inner.map(questionOf) : inner)))
}

function questionOf({ value }: { readonly value: unknown }): unknown {
  return value
}

/** Threads at rest at every kind of place, and one that was forked. */
async function fill(saver: BaseCheckpointSaver): Promise<void> {
  const graph = build(saver)
  await graph.invoke(input, on('inside'))
  await graph.invoke(input, on('outside'))
  await graph.invoke(new Command({ resume: 'a' }), on('outside'))
  await graph.invoke(input, on('done/ü'))
  await graph.invoke(new Command({ resume: 'a' }), on('done/ü'))
  await graph.invoke(new Command({ resume: 'b' }), on('done/ü'))
  await graph.invoke(input, on('forked'))
  const past = []
  for await (const one of graph.getStateHistory(on('forked'))) past.push(one)
  const early = past.find(({ next }) => next.includes('item'))
  await graph.updateState(early?.config as RunnableConfig, { log: ['edited'] }, 'begin')
}

async function tuples(saver: BaseCheckpointSaver, thread: string): Promise<unknown[]> {
  const found: CheckpointTuple[] = []
  for await (const tuple of saver.list(on(thread))) found.push(tuple)
  const shown = found.map(({ checkpoint, metadata, config, parentConfig, pendingWrites }) => {
    const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {}
    return JSON.parse(
      JSON.stringify({
        place: [thread_id, checkpoint_ns, checkpoint_id, parentConfig?.configurable?.['checkpoint_id']],
        checkpoint,
        metadata,
        writes: [...(pendingWrites ?? [])].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
      }),
    )
  })
  return shown.sort((a, b) => (JSON.stringify(a.place) < JSON.stringify(b.place) ? -1 : 1))
}

async function memory(): Promise<Holdfast> {
  const hf = await openHoldfast('memory:')
  opened.push(hf)
  return hf
}

const sources = [
  { name: 'SQLite', missing: false, make: async () => sqlite() },
  { name: 'Postgres', missing: postgres === undefined, make: official },
]

describe.each(sources)('threads of the official $name saver', ({ missing, make }) => {
  it.skipIf(missing)(
    'come over with ids, parents, forks, subgraphs and pending writes',
    { timeout: 600_000 },
    async () => {
      const { url, saver } = await make()
      await fill(saver)
      const hf = await memory()
      const report = await importLangGraph(url, hf)
      expect(report).toMatchObject({ threads: 4, same: 0, failed: [], notes: [], complete: true })
      expect(report.writes).toBeGreaterThan(0)
      const ours = new HoldfastSaver(hf)
      for (const id of ['inside', 'outside', 'done/ü', 'forked']) {
        expect(await tuples(ours, id), id).toEqual(await tuples(saver, id))
      }
      const again = await importLangGraph(url, hf)
      expect(again).toMatchObject({ threads: 4, checkpoints: 0, writes: 0, same: report.checkpoints, failed: [] })
      expect(await tuples(ours, 'inside')).toEqual(await tuples(saver, 'inside'))
    },
  )

  it.skipIf(missing)('go on here exactly as they would have gone on there', { timeout: 600_000 }, async () => {
    const { url, saver } = await make()
    await fill(saver)
    const hf = await memory()
    await importLangGraph(url, hf)
    const [there, here] = [build(saver), build(new HoldfastSaver(hf))]
    for (const id of ['inside', 'outside', 'forked']) {
      const steps = id === 'inside' ? ['x', 'y'] : ['y']
      // A fork that was edited goes on from its edit; the others wait for their answer.
      const first = id === 'forked' ? [null] : []
      for (const give of [...first, ...steps.map((resume) => new Command({ resume }) as never)]) {
        const [expected, got] = [await there.invoke(give, on(id)), await here.invoke(give, on(id))]
        expect(withoutIds(got), id).toEqual(withoutIds(expected))
      }
      const [expected, got] = [await there.getState(on(id)), await here.getState(on(id))]
      expect(got.next).toEqual(expected.next)
      expect(got.values['log']).toEqual(expected.values['log'])
    }
    expect((await here.getState(on('outside'))).values['log']).toContain('ended')
  })

  it.skipIf(missing)('come over by the command, which leaves another thread of the same name alone', async () => {
    const { url, saver } = await make()
    await fill(saver)
    const store = `sqlite:${join(folder, `${count++}-ours.db`)}`
    await using hf = await openHoldfast(store)
    await build(new HoldfastSaver(hf)).invoke(input, on('inside'))
    const ended = await holdfast(['import-langgraph', url, '--store', store, '--json'])
    const report = JSON.parse(ended.out)
    expect(report).toMatchObject({ threads: 3, failed: [{ thread: 'inside' }] })
    expect(ended.code).toBe(1)
    const one = await holdfast(['import-langgraph', url, '--store', store, '--thread', 'outside'])
    expect(one).toMatchObject({ code: 0, out: expect.stringMatching(/^1 threads, 0 checkpoints/) })
  })
})

describe('an import from LangGraph', () => {
  it('says of a thread what it could not read, and leaves nothing of it', async () => {
    const { url, saver } = sqlite()
    await build(saver).invoke(input, on('good'))
    await build(saver).invoke(input, on('bad'))
    const db = new DatabaseSync(url.slice('sqlite:'.length))
    db.exec(
      "UPDATE checkpoints SET checkpoint = 'no json' WHERE thread_id = 'bad' AND parent_checkpoint_id IS NOT NULL",
    )
    db.exec(
      "INSERT INTO writes SELECT thread_id, checkpoint_ns, 'gone', task_id, idx, channel, type, value FROM writes WHERE thread_id = 'good' LIMIT 1",
    )
    db.close()
    const hf = await memory()
    const report = await importLangGraph(url, hf)
    expect(report).toMatchObject({ threads: 1, failed: [{ thread: 'bad' }] })
    expect(report.notes).toEqual([expect.stringContaining('waits for checkpoint gone, which is gone')])
    expect((await hf.threads({ thread: { langgraph: 'bad' } })).threads).toEqual([])
  })

  it('refuses what is no such database', async () => {
    const hf = await memory()
    await openHoldfast(`sqlite:${join(folder, 'ours.db')}`).then((own) => own.close())
    await expect(importLangGraph(join(folder, 'ours.db'), hf)).rejects.toThrow('has no table "checkpoints"')
    await expect(importLangGraph(join(folder, 'nothing.db'), hf)).rejects.toThrow('There is no file')
    await expect(importLangGraph('redis://localhost', hf)).rejects.toThrow('is a redis address')
  })
})
