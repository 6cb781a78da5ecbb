import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KeyOptions } from 'holdfast'
import { type Clock, openDriver } from 'holdfast/driver'
import { LogStore, ops, type State, type Updated } from 'holdfast/log'
import { parseBranchId, parseTenantId, parseThreadId } from '#src/core/ids.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore, type MemoryStore } from '#src/drivers/memory/memory-store.js'
import type { Driver, LogKey } from '#src/log/contract.js'

const { set } = ops

export const K1 = randomBytes(32)
export const K2 = randomBytes(32)
export const keys: KeyOptions = { current: 'k1', masters: { k1: K1 } }
/** The same, on a store that was used without keys until now. */
export const adopting: KeyOptions = {
  ...keys,
  adoptPlain: { tenants: ['default'], writtenBefore: new Date(Date.now() + 86_400_000), acceptUntil: '2999-01-01' },
}
export const hmacOnly: KeyOptions = { ...keys, encrypt: false }

export function logKey(thread: string, tenant = 'default', branch = 'main'): LogKey {
  return { tenant: parseTenantId(tenant), thread: parseThreadId(thread), branch: parseBranchId(branch) }
}

/** One place that several stores open, as several processes would. */
export interface Place {
  readonly driver: () => Promise<Driver>
  open(keys?: KeyOptions, clock?: Clock): Promise<LogStore>
  /** Every byte that is stored, in any order. */
  bytes(): Promise<Buffer>
  end(): Promise<void>
}

export async function memoryPlace(store: MemoryStore = createMemoryStore()): Promise<Place & { store: MemoryStore }> {
  const driver = () => openMemory({ store })
  return {
    store,
    driver,
    open: async (options, clock) => openStore(await driver(), options, clock),
    bytes: async () => Buffer.concat([...everything(store)].map((bytes) => Buffer.from(bytes))),
    end: async () => store.threads.clear(),
  }
}

/** On disk, by a driver that is named by its scheme. */
export async function diskPlace(scheme: 'sqlite' | 'file'): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-keys-'))
  const opened: Driver[] = []
  const driver = async () => {
    const one = await openDriver(`${scheme}:${join(folder, 'store')}`)
    opened.push(one)
    return one
  }
  return {
    driver,
    open: async (options, clock) => openStore(await driver(), options, clock),
    bytes: async () => {
      const files = await readdir(folder, { recursive: true, withFileTypes: true })
      const contents = files.filter((file) => file.isFile()).map((file) => readFile(join(file.parentPath, file.name)))
      return Buffer.concat([...(await Promise.all(contents)), Buffer.from(files.map(({ name }) => name).join('\n'))])
    },
    end: async () => {
      await Promise.all(opened.map((one) => one.close()))
      await rm(folder, { recursive: true })
    },
  }
}

function openStore(driver: Driver, options: KeyOptions | undefined, clock: Clock | undefined): LogStore {
  const blobThreshold = 2048
  return new LogStore(driver, { blobThreshold, ...(options ? { keys: options } : {}), ...(clock ? { clock } : {}) })
}

function* everything(store: MemoryStore): Generator<Uint8Array> {
  for (const threads of store.threads.values()) {
    for (const thread of threads.values()) {
      for (const log of thread.branches.values()) {
        yield Buffer.from(JSON.stringify([log.key, log.incarnation, log.index]))
        for (const entry of log.entries) yield* [Buffer.from(entry.hash), entry.header, entry.body]
      }
    }
  }
  for (const blobs of store.blobs.values()) {
    for (const [name, blob] of blobs) yield* [Buffer.from(name), blob.bytes]
  }
}

/** Sets one value on a log, opened for it. */
export async function write(store: LogStore, log: LogKey, name: string, value: unknown): Promise<Updated> {
  return (await store.open(log)).update(() => [{ kind: 'step', ops: [set(name, value)] }])
}

/** The newest state of a log. */
export async function read(store: LogStore, log: LogKey): Promise<State> {
  return (await store.open(log)).fold.state
}

/** The key id of each entry of a log, oldest first. */
export async function keyIds(store: LogStore, log: LogKey): Promise<(string | null)[]> {
  const history = await (await store.open(log)).history({ limit: 1000 })
  return history.map(({ header }) => header.key).reverse()
}
