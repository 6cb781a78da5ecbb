import { ClosedError, type DataLossError, UnavailableError } from '../../core/errors.js'
import type { Argument, RedisLike, Reply } from './client.js'
import { timedOut, toDriverError } from './server/errors.js'
import { slotOfKey } from './rows/keys.js'
import type { Script } from './scripts.js'

/** One script with its keys, all in one slot. `binary`: the reply holds bytes and not text. */
export interface ScriptCall {
  readonly script: Script
  readonly keys: readonly string[]
  readonly args: readonly Argument[]
  readonly binary?: boolean
}

/** One plain command; its first argument is its key. */
interface CommandCall {
  readonly command: string
  readonly args: readonly Argument[]
  readonly binary?: boolean
}

export type Call = ScriptCall | CommandCall
export type Outcome = { readonly reply: Reply } | { readonly error: Error }

export interface ReplicaWait {
  readonly count: number
  readonly timeoutMs: number
}

export interface ConnectionOptions {
  readonly commandTimeoutMs: number
  readonly waitReplicas: ReplicaWait | undefined
  readonly ownsClient: boolean
}

/**
 * Sends calls and returns their replies, in time or not at all. Nothing is ever sent twice: after a broken connection
 * only the layers above can tell whether a write landed. Calls of one flush are sent in one write on a single server;
 * on a cluster they are sent at once, each to its node.
 */
export class Connection {
  readonly client: RedisLike
  /** Set when the store is found to be gone; every later call is refused with it. */
  lost: DataLossError | undefined
  readonly #options: ConnectionOptions
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #waiting = new Set<{ resolve(): void; reject(error: unknown): void }>()
  #closed = false

  constructor(client: RedisLike, options: ConnectionOptions) {
    this.client = client
    this.#options = options
    client.on('ready', this.#onReady)
    client.on('end', this.#onEnd)
  }

  /** Replies by index; rejects as a whole if any call failed. */
  async read(calls: readonly Call[]): Promise<readonly Reply[]> {
    return (await this.flush(calls, false)).map((outcome) => {
      if ('error' in outcome) throw toDriverError(outcome.error, false)
      return outcome.reply
    })
  }

  /** As `read`, for a single call that writes. */
  async write(call: Call): Promise<Reply> {
    const [outcome] = await this.flush([call], true)
    if (outcome === undefined || 'error' in outcome) throw toDriverError(outcome?.error, true)
    return outcome.reply
  }

  /** Outcomes by index. With `durable` it ends when the replicas that were asked for have the writes. */
  flush(calls: readonly Call[], write: boolean, durable = false): Promise<readonly Outcome[]> {
    if (this.#closed) return Promise.reject(new ClosedError('The redis driver'))
    if (this.lost !== undefined) return Promise.reject(this.lost)
    const wait = durable ? this.#options.waitReplicas : undefined
    const work = this.#flushInTime(calls, write, wait)
    const settled = work.then(
      () => void this.#underWay.delete(settled),
      () => void this.#underWay.delete(settled),
    )
    this.#underWay.add(settled)
    return work
  }

  /**
   * Resolves when the replicas that were asked for have what can be read under a key. WAIT speaks of everything up to
   * the last command of its connection, so a read before it covers what other connections wrote.
   */
  async confirm(key: string): Promise<void> {
    const calls = [{ command: 'exists', args: [key] }]
    const [outcome] = await this.flush(calls, false, true)
    if (outcome !== undefined && 'error' in outcome) throw toDriverError(outcome.error, false)
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /** Refuses new calls and waits for those in progress. */
  async settle(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#underWay)
  }

  async close(): Promise<void> {
    await this.settle()
    this.client.off('ready', this.#onReady)
    this.client.off('end', this.#onEnd)
    if (this.#options.ownsClient) this.client.disconnect()
  }

  async #flushInTime(calls: readonly Call[], write: boolean, wait: ReplicaWait | undefined): Promise<Outcome[]> {
    const limit = this.#options.commandTimeoutMs + (wait?.timeoutMs ?? 0)
    let sent = false
    let timer: NodeJS.Timeout | undefined
    let leave: (() => void) | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        leave?.()
        reject(timedOut(limit, sent && write ? 'unknown' : 'nothing'))
      }, limit)
    })
    try {
      if (this.client.status !== 'ready') {
        const ready = this.#untilReady()
        leave = ready.leave
        await Promise.race([ready.promise, late])
      }
      sent = true
      return await Promise.race([this.#sendAll(calls, wait), late])
    } finally {
      clearTimeout(timer)
    }
  }

  // Commands are held back here and not in the client's queue: what waits there is sent when the connection returns,
  // long after its writer was told that it failed. One listener for all of them: Node warns of a leak at the eleventh.
  #untilReady(): { promise: Promise<void>; leave: () => void } {
    const { client } = this
    let leave = (): void => {}
    const promise = new Promise<void>((resolve, reject) => {
      const waiting = { resolve, reject }
      leave = () => void this.#waiting.delete(waiting)
      if (client.status === 'end') return reject(ended())
      this.#waiting.add(waiting)
      if (client.status === 'wait') client.connect().catch(() => {})
    })
    return { promise, leave }
  }

  readonly #onReady = (): void => {
    for (const { resolve } of this.#waiting) resolve()
    this.#waiting.clear()
  }

  readonly #onEnd = (): void => {
    for (const { reject } of this.#waiting) reject(ended())
    this.#waiting.clear()
  }

  async #sendAll(calls: readonly Call[], wait: ReplicaWait | undefined): Promise<Outcome[]> {
    const outcomes = this.client.isCluster ? await this.#sendApart(calls) : await this.#sendTogether(calls, wait)
    const unknown = calls.flatMap((call, i) => {
      const outcome = outcomes[i]
      const isUnknown = outcome !== undefined && 'error' in outcome && /\bNOSCRIPT\b/.test(outcome.error.message)
      return isUnknown && 'script' in call ? [{ call, i }] : []
    })
    if (unknown.length > 0) {
      // Refused before anything ran: the server restarted and forgot its scripts, so these are sent with their text.
      const again = await Promise.all(unknown.map(({ call }) => outcomeOf(sendText(this.client, call))))
      for (const [at, { i }] of unknown.entries()) outcomes[i] = again[at] as Outcome
    }
    if (wait !== undefined && (this.client.isCluster || unknown.length > 0)) await this.#waitApart(calls, wait)
    return outcomes
  }

  async #sendTogether(calls: readonly Call[], wait: ReplicaWait | undefined): Promise<Outcome[]> {
    const [only] = calls
    // A pipeline of one call costs the client half as much again.
    if (only !== undefined && calls.length === 1 && wait === undefined) {
      return [await outcomeOf(addCall(this.client, only) as Promise<unknown>)]
    }
    const pipeline = this.client.pipeline()
    for (const call of calls) addCall(pipeline, call)
    if (wait !== undefined) pipeline.call('WAIT', String(wait.count), String(wait.timeoutMs))
    const replies = (await pipeline.exec()) ?? []
    const confirmed = wait === undefined ? undefined : replies.pop()?.[1]
    const outcomes = replies.map(([error, reply]): Outcome => (error ? { error } : { reply: reply as Reply }))
    // With nothing written there is nothing to confirm, and the errors of the calls say more.
    if (wait !== undefined && outcomes.some((outcome) => 'reply' in outcome)) checkReplicas(confirmed, wait)
    return outcomes
  }

  #sendApart(calls: readonly Call[]): Promise<Outcome[]> {
    return Promise.all(calls.map((call) => outcomeOf(addCall(this.client, call) as Promise<unknown>)))
  }

  // WAIT speaks of the writes of its own connection, so it goes to each node that took one.
  async #waitApart(calls: readonly Call[], wait: ReplicaWait): Promise<void> {
    const { client } = this
    const masters = client.isCluster ? (client.nodes?.('master') ?? []) : [client]
    const nodes = new Set(calls.map((call) => client.slots?.[slotOfKey(firstKey(call))]?.[0]))
    const taken = masters.filter((node) => !client.isCluster || nodes.has(addressOf(node)))
    const counts = await Promise.all(taken.map((node) => node.call('WAIT', String(wait.count), String(wait.timeoutMs))))
    for (const count of counts) checkReplicas(count, wait)
  }
}

function ended(): UnavailableError {
  return new UnavailableError('The Redis client has ended its connection.', { written: 'nothing' })
}

function addCall(
  target: Pick<RedisLike, 'call' | 'callBuffer'> | ReturnType<RedisLike['pipeline']>,
  call: Call,
): unknown {
  const name = 'script' in call ? 'evalsha' : call.command
  const args = 'script' in call ? [call.script.sha, String(call.keys.length), ...call.keys, ...call.args] : call.args
  return call.binary ? target.callBuffer(name, ...args) : target.call(name, ...args)
}

function sendText(client: RedisLike, { script, keys, args, binary }: ScriptCall): Promise<unknown> {
  const all = [script.text, String(keys.length), ...keys, ...args]
  return binary ? client.callBuffer('eval', ...all) : client.call('eval', ...all)
}

async function outcomeOf(promise: Promise<unknown>): Promise<Outcome> {
  try {
    return { reply: (await promise) as Reply }
  } catch (error) {
    return { error: error as Error }
  }
}

function checkReplicas(count: unknown, { count: asked, timeoutMs }: ReplicaWait): void {
  if (typeof count === 'number' && count >= asked) return
  throw new UnavailableError(
    `Only ${typeof count === 'number' ? count : 0} of ${asked} replicas confirmed the write within ${timeoutMs} ms.`,
    { written: 'unknown', data: { reason: 'replicas', confirmed: count ?? 0, asked }, remedy: 'Check the replicas.' },
  )
}

function firstKey(call: Call): string {
  return 'script' in call ? (call.keys[0] as string) : String(call.args[0])
}

function addressOf(node: RedisLike): string {
  const { host, port } = node.options as { host?: string; port?: number }
  return `${host}:${port}`
}
