import type {
  Append,
  AppendResult,
  Capabilities,
  Driver,
  Survives,
  Hash,
  LogKey,
  StoredEntry,
  Tail,
  Tombstone,
} from '../../log/contract.js'
import type { CopyDriver } from '../../log/copy-contract.js'
import type { ItemDriver } from '../../log/store-contract.js'
import { checkBatch, checkStandIn } from '../shared/checks.js'
import { checkItemWrites } from '../shared/item-checks.js'
import { readTogether } from '../shared/read-together.js'
import { makeAppendStatement, readAppendResults, type SortedBatch } from './statements/append-statement.js'
import { hashBytes, indexValues } from './statements/single-append.js'
import { encodeArray } from './values/binary-array.js'
import { type BlobStatements, makeBlobStatements } from './statements/blob-statements.js'
import type { Channel } from './channel.js'
import { bury, listTombstones, tenantsStatement } from './census.js'
import { makeDueStatement, readDuePage } from './statements/due-statement.js'
import { makeHeadsStatement, readHeadPage } from './statements/heads-statement.js'
import { parseHead } from './values/head-row.js'
import { type ItemStatements, makeItemStatements, readItem, readWriteResults } from './statements/item-statements.js'
import {
  bytesOf,
  keyValues,
  type LogStatements,
  makeLogStatements,
  readEntry,
  readHeader,
  readTail,
} from './statements/log-statements.js'
import { labelsOf } from './values/labels.js'
import { describeTarget, type Settings } from './options.js'
import type { Row, Sessions } from './connection/sessions.js'
import { fromText, toText } from './values/text-form.js'
import { transact } from './transact.js'

/** Larger puts are sent in parts: the server keeps a whole statement in memory. */
const PUT_BYTES = 16 * 1024 * 1024

/** What opening has set up. */
export interface Connected {
  readonly settings: Settings
  readonly sessions: Sessions
  readonly channel: Channel
  readonly durability: Survives
  readonly capabilities: Capabilities
  end(): Promise<void>
}

/** The contract, operation by operation. Each but a large `putBlobs` is one statement and one round trip. */
export class PostgresDriver implements Driver, Omit<ItemDriver, 'applyWrites'>, CopyDriver {
  readonly name = 'postgres'
  readonly capabilities: Capabilities
  readonly survives: Survives
  readonly subscribe?: NonNullable<Driver['subscribe']>
  readonly #connected: Connected
  readonly #schema: string
  readonly #sessions: Sessions
  readonly #logs: LogStatements
  readonly #blobs: BlobStatements
  readonly #items: ItemStatements
  /** Those who open logs at the same time share a statement. */
  readonly #newestTail = readTogether((logs: readonly LogKey[]) => this.#readTails(logs))
  #closing: Promise<void> | undefined

  constructor(connected: Connected) {
    this.#connected = connected
    this.#schema = connected.settings.quotedSchema
    this.#sessions = connected.sessions
    this.capabilities = connected.capabilities
    this.survives = connected.durability
    this.#logs = makeLogStatements(this.#schema, (operation) => this.#nameOf(operation))
    this.#blobs = makeBlobStatements(this.#schema, (operation) => this.#nameOf(operation))
    this.#items = makeItemStatements(this.#schema, (operation) => this.#nameOf(operation))
    if (connected.capabilities.watch) {
      this.subscribe = async (topic, heard) => {
        this.#sessions.checkOpen()
        return connected.channel.subscribe(topic, heard)
      }
    }
  }

  async append(batch: Parameters<Driver['append']>[0]): ReturnType<Driver['append']> {
    this.#sessions.checkOpen()
    if (batch.length === 0) return []
    const { statement, order } = this.#appendStatement(batch)
    const [row] = await this.#sessions.write(statement)
    const { results, listening } = readAppendResults(row, order)
    this.#connected.channel.noteListening(listening)
    return results
  }

  async transact(
    work: Parameters<NonNullable<Driver['transact']>>[0],
    { timeoutMs }: { readonly timeoutMs: number },
  ): Promise<AppendResult> {
    const { schema, statementTimeoutMs } = this.#connected.settings
    const settings = { target: describeTarget(this.#connected.settings), schema, statementTimeoutMs, timeoutMs }
    const statements = { blobs: this.#blobs, append: (append: Append) => this.#appendStatement([append]) }
    return transact(this.#sessions, settings, statements, work, (listening) =>
      this.#connected.channel.noteListening(listening),
    )
  }

  async tail(log: LogKey, upTo?: number): ReturnType<Driver['tail']> {
    if (upTo === undefined) return this.#newestTail(log)
    return readTail(await this.#sessions.read(this.#logs.tail(log, upTo)))
  }

  async read(log: LogKey, from: number, limit: number): ReturnType<Driver['read']> {
    return (await this.#sessions.read(this.#logs.read(log, from, limit))).map(readEntry)
  }

  async headers(log: LogKey, options: Parameters<Driver['headers']>[1]): ReturnType<Driver['headers']> {
    return (await this.#sessions.read(this.#logs.headers(log, options.before, options.limit))).map(readHeader)
  }

  async head(log: LogKey): ReturnType<Driver['head']> {
    const [row] = await this.#sessions.read(this.#logs.head(log))
    return row?.[0] ? parseHead(row[0]) : undefined
  }

  async renew(log: LogKey, incarnation: string, epoch: number, ms: number): Promise<boolean> {
    return (await this.#sessions.write(this.#logs.renew(log, incarnation, epoch, ms))).length > 0
  }

  async heads(query: Parameters<Driver['heads']>[0]): ReturnType<Driver['heads']> {
    this.#sessions.checkOpen()
    return readHeadPage(await this.#sessions.read(makeHeadsStatement(this.#schema, query)), query)
  }

  async takeDue(query: Parameters<NonNullable<Driver['takeDue']>>[0]): ReturnType<NonNullable<Driver['takeDue']>> {
    const statement = makeDueStatement(this.#schema, this.#nameOf('take_due'), query)
    return readDuePage(await this.#sessions.write(statement))
  }

  async positions(logs: readonly LogKey[]): ReturnType<NonNullable<Driver['positions']>> {
    if (logs.length === 0) return []
    const rows = await this.#sessions.read(this.#logs.positions(logs))
    const found = new Map(rows.map(([at, incarnation, seq]) => [Number(at), { incarnation, seq: Number(seq) }]))
    return logs.map((_, i) => {
      const position = found.get(i + 1)
      return position && { incarnation: fromText(position.incarnation as string), seq: position.seq }
    })
  }

  publish(topic: string, message: string): void {
    this.#connected.channel.publish(topic, message)
  }

  hasSubscribers(topic: string): boolean {
    return this.#connected.channel.hasSubscribers(topic)
  }

  async prune(log: LogKey, incarnation: string, seq: number, standIn?: StoredEntry): ReturnType<Driver['prune']> {
    checkStandIn(seq, standIn)
    const where = [...keyValues(log), toText(incarnation), seq]
    const given = standIn && [Buffer.from(standIn.hash, 'hex'), standIn.header, standIn.body]
    const removed = await (given ? this.#call('prune_with', [...where, ...given]) : this.#call('prune', where))
    return removed === null ? 'conflict' : { removed: Number(removed) }
  }

  async erase(request: Parameters<Driver['erase']>[0]): ReturnType<Driver['erase']> {
    const { tenant, thread, branch, expect, tombstone } = request
    const erased = await this.#call('erase', [
      tenant,
      thread,
      branch ?? null,
      expect
        ? encodeArray(
            'text',
            expect.map((each) => each.branch),
          )
        : null,
      expect
        ? encodeArray(
            'text',
            expect.map((each) => toText(each.incarnation)),
          )
        : null,
      expect
        ? encodeArray(
            'bigint',
            expect.map((each) => each.seq),
          )
        : null,
      tombstone?.at ?? null,
      tombstone ? toText(tombstone.reason) : null,
    ])
    return erased === null ? 'conflict' : { erased: Number(erased) }
  }

  async scrub(): ReturnType<NonNullable<Driver['scrub']>> {
    const note =
      'Postgres keeps deleted rows in its files until VACUUM reuses their space (VACUUM FULL removes them at once), and its ' +
      'write-ahead log and backups keep them longer. To be sure without that, encrypt with keys.vault and destroy the secret.'
    return { complete: false, note }
  }

  async tombstone(tenant: LogKey['tenant'], thread: LogKey['thread']): ReturnType<Driver['tombstone']> {
    const text = `SELECT t.at, t.reason FROM ${this.#schema}.tombstones t WHERE t.tenant = $1 AND t.thread = $2`
    const [row] = await this.#sessions.read({ name: this.#nameOf('tombstone'), text, values: [tenant, thread] })
    return row && { at: Number(row[0]), reason: fromText(row[1] as string) }
  }

  async reindex(
    log: LogKey,
    expect: Parameters<Driver['reindex']>[1],
    index: Parameters<Driver['reindex']>[2],
  ): Promise<boolean> {
    const labels = encodeArray('bytea', labelsOf(index))
    const at = [toText(expect.incarnation), expect.seq, hashBytes(expect.hash), expect.epoch]
    return (await this.#call('reindex', [...keyValues(log), ...at, ...indexValues(index), labels])) === 't'
  }

  async touchBlobs(tenant: LogKey['tenant'], hashes: readonly Hash[]): ReturnType<Driver['touchBlobs']> {
    const rows = await this.#sessions.write(this.#blobs.touch(tenant, hashes))
    const found = new Set(rows.map(([hash]) => hash))
    return hashes.filter((hash) => !found.has(hash))
  }

  async putBlobs(tenant: LogKey['tenant'], blobs: Parameters<Driver['putBlobs']>[1]): Promise<void> {
    this.#sessions.checkOpen()
    let part: { hash: Hash; bytes: Uint8Array }[] = []
    let size = 0
    // By hash: a statement can't touch the same row twice.
    for (const [hash, bytes] of new Map(blobs.map((blob) => [blob.hash, blob.bytes]))) {
      if (part.length > 0 && size + bytes.length > PUT_BYTES) {
        await this.#sessions.write(this.#blobs.put(tenant, part))
        part = []
        size = 0
      }
      part.push({ hash, bytes })
      size += bytes.length
    }
    if (part.length > 0) await this.#sessions.write(this.#blobs.put(tenant, part))
  }

  async getBlobs(tenant: LogKey['tenant'], hashes: readonly Hash[]): ReturnType<Driver['getBlobs']> {
    const rows = await this.#sessions.read(this.#blobs.get(tenant, hashes))
    return new Map(rows.map(([hash, bytes]) => [hash as Hash, bytesOf(bytes)]))
  }

  async listBlobs(
    tenant: LogKey['tenant'],
    options: Parameters<Driver['listBlobs']>[1],
  ): ReturnType<Driver['listBlobs']> {
    const rows = await this.#sessions.read(this.#blobs.list(tenant, options.after, options.limit))
    // Microseconds, as milliseconds with a fraction: exact both ways below 2^53.
    return rows.map(([hash, size, us]) => ({ hash: hash as Hash, size: Number(size), touchedAt: Number(us) / 1000 }))
  }

  async removeBlob(tenant: LogKey['tenant'], hash: Hash, touchedAt: number): Promise<boolean> {
    const us = Math.round(touchedAt * 1000)
    if (us / 1000 !== touchedAt) return false
    return (await this.#sessions.write(this.#blobs.remove(tenant, hash, us))).length > 0
  }

  async writeItems(
    tenant: LogKey['tenant'],
    writes: Parameters<ItemDriver['writeItems']>[1],
    now: number,
  ): ReturnType<ItemDriver['writeItems']> {
    this.#sessions.checkOpen()
    checkItemWrites(writes)
    if (writes.length === 0) return []
    const { statement, order } = this.#items.write(tenant, writes, now)
    return readWriteResults(await this.#sessions.write(statement), order)
  }

  async readItems(
    tenant: LogKey['tenant'],
    space: string,
    keys: readonly string[],
    { now, extendTo }: Parameters<ItemDriver['readItems']>[3],
  ): ReturnType<ItemDriver['readItems']> {
    const rows =
      extendTo === undefined
        ? await this.#sessions.read(this.#items.read(tenant, space, keys, now))
        : await this.#sessions.write(this.#items.extend(tenant, space, keys, now, extendTo))
    return rows.map(readItem)
  }

  async scanItems(
    tenant: LogKey['tenant'],
    space: string,
    scan: Parameters<ItemDriver['scanItems']>[2],
    now: number,
  ): ReturnType<ItemDriver['scanItems']> {
    return (await this.#sessions.read(this.#items.scan(tenant, space, scan, now))).map(readItem)
  }

  async listSpaces(
    tenant: LogKey['tenant'],
    { after, limit }: Parameters<ItemDriver['listSpaces']>[1],
  ): ReturnType<ItemDriver['listSpaces']> {
    return (await this.#sessions.read(this.#items.spaces(tenant, after, limit))).map(([space]) => space as string)
  }

  async sweepItems(now: number, limit: number): Promise<number> {
    const [row] = await this.#sessions.write(this.#items.sweep(now, limit))
    return Number(row?.[0])
  }

  async listTenants(): ReturnType<CopyDriver['listTenants']> {
    return (await this.#sessions.read(tenantsStatement(this.#schema))).map(([tenant]) => tenant as LogKey['tenant'])
  }

  listTombstones({ cursor }: { readonly cursor?: string }): ReturnType<CopyDriver['listTombstones']> {
    return listTombstones(this.#sessions, this.#schema, cursor)
  }

  bury(tenant: LogKey['tenant'], thread: LogKey['thread'], tombstone: Tombstone): Promise<boolean> {
    const { statementTimeoutMs } = this.#connected.settings
    return bury(this.#sessions, this.#schema, tenant, thread, tombstone, statementTimeoutMs)
  }

  async now(): Promise<number> {
    const [row] = await this.#sessions.read({ text: 'SELECT extract(epoch FROM clock_timestamp()) * 1000', values: [] })
    return Number(row?.[0])
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#connected.channel.close()
    await this.#sessions.close()
    await this.#connected.end()
  }

  /** A function of ours with one result. */
  async #call(operation: 'prune' | 'prune_with' | 'erase' | 'reindex', values: unknown[]): Promise<string | null> {
    const parameters = values.map((_, i) => `$${i + 1}`).join(', ')
    const text = `SELECT ${this.#schema}.${operation}(${parameters})`
    const [row] = await this.#sessions.write({ name: this.#nameOf(operation), text, values })
    return row?.[0] ?? null
  }

  async #readTails(logs: readonly LogKey[]): Promise<readonly (() => Tail | undefined)[]> {
    const [only] = logs
    if (only !== undefined && logs.length === 1) {
      const rows = await this.#sessions.read(this.#logs.tail(only, undefined))
      return [() => readTail(rows)]
    }
    const found = logs.map((): Row[] => [])
    for (const [i, ...row] of await this.#sessions.read(this.#logs.tails(logs))) found[Number(i) - 1]?.push(row)
    return found.map((rows) => () => readTail(rows))
  }

  #appendStatement(batch: readonly Append[]): SortedBatch {
    checkBatch(batch)
    for (const { carried } of batch) if (carried !== undefined) checkItemWrites(carried)
    return makeAppendStatement(this.#schema, (operation) => this.#nameOf(operation), batch)
  }

  // With the schema in it: a pool that is shared may serve several drivers.
  #nameOf(operation: string): string {
    return `hf_${operation}:${this.#connected.settings.schema}`
  }
}
