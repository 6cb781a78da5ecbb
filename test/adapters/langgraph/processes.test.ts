import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { CheckpointTuple } from '@langchain/langgraph-checkpoint'
import { openHoldfast } from 'holdfast'
import { HoldfastSaver } from 'holdfast/langgraph'
import { afterAll, describe, expect, it } from 'vitest'
import { type At, all, backends, cleanUp, put, start } from './support.js'

const program = fileURLToPath(new URL('./children/saver.mjs', import.meta.url))

interface Saved {
  readonly id: string
  readonly parent?: string
  readonly list: readonly string[]
}

interface Child {
  readonly process: ChildProcessWithoutNullStreams
  /** What it was told is saved. */
  readonly saved: Saved[]
  readonly ended: Promise<{ readonly code: number | null; readonly errors: string }>
}

function run(...args: readonly string[]): Child {
  const child = spawn(process.execPath, [program, ...args])
  const saved: Saved[] = []
  createInterface({ input: child.stdout }).on('line', (line) => saved.push(JSON.parse(line) as Saved))
  let errors = ''
  child.stderr.on('data', (text: Buffer) => (errors += String(text)))
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, errors }))
  return { process: child, saved, ended }
}

async function finish(children: readonly Child[]): Promise<void> {
  for (const child of children) child.process.stdin.write('go\n')
  for (const { ended } of children) expect(await ended).toEqual({ code: 0, errors: '' })
}

/** Each checkpoint is its parent's list and one item of its own: nothing is lost, and nothing mixed. */
function expectWhole(tuples: readonly CheckpointTuple[], saved: readonly Saved[]): void {
  const byId = new Map(tuples.map((tuple) => [tuple.checkpoint.id, tuple]))
  expect(byId.size).toBe(tuples.length)
  for (const { id, list, parent } of saved) {
    expect(byId.get(id)?.checkpoint.channel_values).toEqual({ list, text: 'x'.repeat(500) })
    expect(byId.get(id)?.parentConfig?.configurable?.['checkpoint_id']).toBe(parent)
    expect(byId.get(id)?.pendingWrites).toMatchObject([[expect.any(String), 'list', list.at(-1)]])
  }
  for (const { checkpoint, parentConfig } of tuples) {
    const { list } = checkpoint.channel_values as { list: string[] }
    const parent = byId.get(parentConfig?.configurable?.['checkpoint_id'] as string)
    expect(list.slice(0, -1)).toEqual(parent?.checkpoint.channel_values['list'] ?? [])
  }
}

for (const backend of backends.filter(({ name }) => name !== 'memory')) {
  describe.skipIf(backend.missing)(`processes that share ${backend.name}`, () => {
    // Eight where there is a schema to be made: the official savers fail there. Starting one costs half a second.
    const count = ['SQLite', 'Postgres'].includes(backend.name) ? 8 : 2

    it('begin at once on an empty store and write to one thread: who comes second makes a branch', async () => {
      const url = await backend.fresh()
      const children = Array.from({ length: count }, (_, i) => run('race', url, 'race', `p${i}`, '5'))
      await finish(children)
      await using hf = await openHoldfast(url)
      const tuples = await all(new HoldfastSaver(hf).list(start('race')))
      expect(tuples).toHaveLength(count * 5)
      expectWhole(
        tuples,
        children.flatMap(({ saved }) => saved),
      )
      const { threads } = await hf.threads({ thread: { langgraph: 'race' } })
      for (const { branch } of threads) {
        expect(await hf.verify({ langgraph: 'race' }, { branch })).toMatchObject({ ok: true })
      }
    })

    it('lose nothing that was acknowledged when one is killed while it saves', async () => {
      const url = await backend.fresh()
      const child = run('endless', url, 'crash', 'p')
      child.process.stdin.write('go\n')
      while (child.saved.length < 5) await new Promise((resolve) => setTimeout(resolve, 2))
      child.process.kill('SIGKILL')
      await child.ended
      await using hf = await openHoldfast(url)
      const saver = new HoldfastSaver(hf)
      const tuples = await all(saver.list(start('crash')))
      expectWhole(tuples, child.saved)
      // At most the one that was under way besides.
      expect(tuples.length - child.saved.length).toBeLessThanOrEqual(1)
      expect(await hf.verify({ langgraph: 'crash' })).toMatchObject({ ok: true })
      const newest = await saver.getTuple(start('crash'))
      expect(newest?.checkpoint.id).toBe(tuples[0]?.checkpoint.id)
      const list = ((newest?.checkpoint.channel_values['list'] ?? []) as string[]).concat('after')
      await put(saver, newest?.config as At, { list, text: 'x'.repeat(500) }, 100)
      expectWhole(await all(saver.list(start('crash'))), child.saved)
    })
  })
}

afterAll(cleanUp)
