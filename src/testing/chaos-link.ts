import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** How fast a direction may be; nothing given is as fast as it goes. */
export interface Pace {
  readonly bytesPerSecond?: number
  /** Added to every chunk once, in order: latency, not throughput. */
  readonly delayMs?: number
}

/** What the proxy lets a connection ask and report. */
export interface LinkHost {
  readonly target: { readonly host: string; readonly port: number }
  /**
   * Called for each piece a client sends: a returned function means that its reply is to be lost, and is called when it
   * was.
   */
  takesReply(request: Buffer): (() => void) | undefined
  counted(direction: 'up' | 'down', bytes: number): void
  closed(link: ChaosLink): void
}

/** Bytes a slowed direction holds before it stops reading: a real queue in the network is bounded too. */
const queueLimit = 256 * 1024
/** How long a server is silent before its reply counts as whole. */
const replySilenceMs = 25

/** One client's connection through the proxy, and the faults that can hit it. */
export class ChaosLink {
  readonly #host: LinkHost
  readonly #client: net.Socket
  readonly #up: Direction
  readonly #down: Direction
  #server: net.Socket | undefined
  #fate: 'alive' | 'half-open' | 'losing-reply' | 'ended' = 'alive'
  #stalled = false
  #pace: Pace = {}
  #silence: NodeJS.Timeout | undefined
  #replyLost: (() => void) | undefined

  constructor(client: net.Socket, host: LinkHost) {
    this.#host = host
    this.#client = client
    client.setNoDelay(true)
    this.#up = new Direction(client, () => this.#pace)
    this.#down = new Direction(undefined, () => this.#pace)
    this.#down.to(client)
    client.on('data', (chunk: Buffer) => this.#fromClient(chunk))
    client.on('end', () => (this.#fate === 'half-open' ? client.end() : this.#up.end()))
    client.on('error', () => this.#server?.resetAndDestroy())
    client.on('close', () => {
      // A client that gave up waiting has lost the reply as well.
      if (this.#fate === 'losing-reply') this.#finishLostReply()
      else this.#server?.destroy()
      this.#up.discard()
      this.#down.discard()
      host.closed(this)
    })
    // Nothing is read before there is somewhere to forward it to, or a decision to swallow it.
    client.pause()
  }

  connect(): void {
    if (this.#server || this.#fate !== 'alive') return
    const server = net.connect({ ...this.#host.target, allowHalfOpen: true })
    server.setNoDelay(true)
    this.#server = server
    this.#up.to(server)
    this.#down.from(server)
    server.on('connect', () => this.#flow())
    server.on('data', (chunk: Buffer) => this.#fromServer(chunk))
    server.on('end', () => {
      if (this.#fate === 'alive') this.#down.end()
      if (this.#fate === 'losing-reply') this.#finishLostReply()
    })
    server.on('error', () => {
      // The server refused or reset: the client is told the same, as without a proxy.
      if (this.#fate === 'alive' || this.#fate === 'losing-reply') this.#client.resetAndDestroy()
    })
    server.on('close', (hadError: boolean) => {
      if (this.#fate === 'alive' && !hadError) this.#down.end()
    })
  }

  /** A clean end by something in between: both sides see FIN. */
  cut(): void {
    this.#fate = 'ended'
    this.#forget()
    for (const socket of this.#sockets()) {
      socket.resume()
      socket.end()
      setTimeout(() => socket.destroy(), 200).unref()
    }
  }

  /** A crash of something in between: both sides see RST, and bytes in transit are gone. */
  reset(): void {
    this.#fate = 'ended'
    this.#forget()
    for (const socket of this.#sockets()) socket.resetAndDestroy()
  }

  /** The network holds everything back; nobody is told. */
  stall(): void {
    this.#stalled = true
    this.#flow()
  }

  resume(): void {
    this.#stalled = false
    this.connect()
    this.#flow()
  }

  /** The server has forgotten the connection, but the client hasn't been told: what it sends gets no answer. */
  halfOpen(): void {
    if (this.#fate !== 'alive') return
    this.#fate = 'half-open'
    this.#forget()
    this.#server?.destroy()
    this.#client.resume()
  }

  slow(pace: Pace): void {
    this.#pace = pace
  }

  /** What a healed network does to each connection: late bytes arrive; a forgotten connection is reset. */
  heal(): void {
    this.#pace = {}
    if (this.#fate === 'half-open') this.reset()
    else this.resume()
  }

  destroy(): void {
    this.#fate = 'ended'
    this.#forget()
    for (const socket of this.#sockets()) socket.destroy()
  }

  #fromClient(chunk: Buffer): void {
    if (this.#fate === 'half-open' || this.#fate === 'ended') return
    if (this.#fate === 'alive') {
      this.#replyLost = this.#host.takesReply(chunk)
      if (this.#replyLost) this.#fate = 'losing-reply'
    }
    this.#host.counted('up', chunk.length)
    this.#up.push(chunk)
  }

  #fromServer(chunk: Buffer): void {
    if (this.#fate === 'losing-reply') {
      // Not reset at the first byte: it may belong to an earlier request, and the server must have handled this one.
      clearTimeout(this.#silence)
      this.#silence = setTimeout(() => this.#finishLostReply(), replySilenceMs)
      return
    }
    if (this.#fate !== 'alive') return
    this.#host.counted('down', chunk.length)
    this.#down.push(chunk)
  }

  #finishLostReply(): void {
    if (this.#fate !== 'losing-reply') return
    this.#fate = 'ended'
    // The server gets FIN, not RST: a reset could throw away a request that it hasn't read yet.
    this.#server?.end()
    this.#server?.resume()
    const server = this.#server
    setTimeout(() => server?.destroy(), 200).unref()
    this.#forget()
    this.#client.resetAndDestroy()
    this.#replyLost?.()
  }

  #flow(): void {
    for (const direction of [this.#up, this.#down]) {
      direction.hold(this.#stalled || !this.#server || this.#server.connecting)
    }
  }

  #forget(): void {
    clearTimeout(this.#silence)
    this.#up.discard()
    this.#down.discard()
  }

  #sockets(): net.Socket[] {
    return this.#server ? [this.#client, this.#server] : [this.#client]
  }
}

/** Bytes from one socket to the other, in order, no faster than the pace and than the receiver. */
class Direction {
  readonly #pace: () => Pace
  #source: net.Socket | undefined
  #sink: net.Socket | undefined
  #queue: { chunk: Buffer | 'end'; dueAt: number }[] = []
  #queued = 0
  #held = true
  #pumping = false
  #discarded = false

  constructor(source: net.Socket | undefined, pace: () => Pace) {
    this.#source = source
    this.#pace = pace
  }

  from(source: net.Socket): void {
    this.#source = source
  }

  to(sink: net.Socket): void {
    this.#sink = sink
  }

  push(chunk: Buffer): void {
    this.#add(chunk)
    this.#queued += chunk.length
    if (this.#queued > queueLimit) this.#source?.pause()
  }

  end(): void {
    this.#add('end')
  }

  hold(held: boolean): void {
    this.#held = held
    if (held) this.#source?.pause()
    else {
      this.#source?.resume()
      void this.#pump()
    }
  }

  discard(): void {
    this.#discarded = true
    this.#queue = []
  }

  #add(chunk: Buffer | 'end'): void {
    if (this.#discarded) return
    this.#queue.push({ chunk, dueAt: Date.now() + (this.#pace().delayMs ?? 0) })
    void this.#pump()
  }

  async #pump(): Promise<void> {
    if (this.#pumping) return
    this.#pumping = true
    try {
      for (let next = this.#queue[0]; next && this.#mayFlow(); next = this.#queue[0]) {
        const wait = next.dueAt - Date.now()
        if (wait > 0) await sleep(wait, undefined, { ref: false })
        // A fault may have come while this waited: what is held back or gone isn't written.
        if (!this.#mayFlow() || this.#queue[0] !== next) continue
        if (next.chunk === 'end') {
          this.#queue.shift()
          this.#sink?.end()
        } else await this.#writeSome(next as { chunk: Buffer })
      }
    } finally {
      this.#pumping = false
    }
  }

  async #writeSome(entry: { chunk: Buffer }): Promise<void> {
    const { bytesPerSecond } = this.#pace()
    // A slowed link trickles twenty times a second, so that a message arrives in torn pieces.
    const size = bytesPerSecond ? Math.max(1, Math.ceil(bytesPerSecond / 20)) : entry.chunk.length
    const piece = entry.chunk.subarray(0, size)
    entry.chunk = entry.chunk.subarray(size)
    if (entry.chunk.length === 0) this.#queue.shift()
    this.#queued -= piece.length
    const sink = this.#sink
    if (!sink || sink.destroyed) return
    const wantsMore = sink.write(piece)
    if (bytesPerSecond) await sleep((piece.length / bytesPerSecond) * 1000, undefined, { ref: false })
    if (!wantsMore && !sink.destroyed) {
      this.#source?.pause()
      await Promise.race([once(sink, 'drain'), once(sink, 'close')]).catch(() => {})
    }
    if (this.#queued <= queueLimit && !this.#held && !this.#discarded) this.#source?.resume()
  }

  #mayFlow(): boolean {
    return !this.#held && !this.#discarded
  }
}
