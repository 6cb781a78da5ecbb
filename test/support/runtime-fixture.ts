import { readdirSync, readFileSync } from 'node:fs'
import { Holdfast } from 'holdfast'
import { LogStore } from 'holdfast/log'
import { virtualClock, type VirtualClock } from 'holdfast/testing'
import { setIndex } from '#src/drivers/memory/due.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore, ensureThread, type MemoryLog } from '#src/drivers/memory/memory-store.js'
import type { Head, StoredEntry } from '#src/log/contract.js'

export const RUNTIME_FIXTURES = new URL('../fixtures/runtime-v1/', import.meta.url)
/** Threads of agents in each form in which they were ever stored. */
export const AGENT_FIXTURES = ['agent-v1', 'agent-v2', 'agent-v3'].map((name) => ({
  form: name,
  folder: new URL(`../fixtures/${name}/`, import.meta.url),
}))

interface Fixture {
  readonly program: string
  readonly stage: string
  readonly logs: readonly {
    readonly head: Omit<Head, 'lease'>
    readonly entries: readonly (Omit<StoredEntry, 'header' | 'body'> & {
      readonly header: string
      readonly body: string
    })[]
  }[]
}

export function runtimeFixtures(folder = RUNTIME_FIXTURES): string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.json'))
}

/** A store that holds a fixture, as a process finds it after the one that wrote it is gone. Writing to it is its own. */
export async function openRuntimeFixture(
  name: string,
  folder = RUNTIME_FIXTURES,
): Promise<{ hf: Holdfast; clock: VirtualClock }> {
  const { logs } = JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')) as Fixture
  const clock = virtualClock({ now: Date.UTC(2026, 0, 2, 3, 5) })
  const store = createMemoryStore({ clock })
  for (const { head, entries } of logs) {
    const log: MemoryLog = {
      key: head.log,
      incarnation: head.incarnation,
      entries: entries.map((entry) => ({ ...entry, header: bytes(entry.header), body: bytes(entry.body) })),
      epoch: head.epoch,
      owner: null,
      leaseEnd: 0,
      index: head.index,
      applied: head.applied ?? -1,
    }
    ensureThread(store, head.log.tenant, head.log.thread).branches.set(head.log.branch, log)
    // So that workers find it when it is due.
    setIndex(store, log, head.index)
  }
  return { hf: new Holdfast(new LogStore(await openMemory({ store, clock }), { clock })), clock }
}

function bytes(base64: string): Uint8Array {
  return new Uint8Array(Buffer.from(base64, 'base64'))
}
