import { Worker } from 'node:worker_threads'
import type { Clock } from '../../core/time/clock.js'
import { ClosedError, type HoldfastError, UnavailableError } from '../../core/errors.js'
import { explainFailure } from './connection/explain-failure.js'
import { machineMs } from './rows/lease.js'
import type { CallName, Calls, OpenedDatabase, Reply, Request, WorkerSettings } from './protocol.js'

interface Waiting {
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * The main thread's end of the worker. Calls are answered in the order they are made. The worker keeps the process
 * alive only while a call is pending: an open store with nothing to do never prevents an exit.
 */
export class WorkerLink {
  readonly #worker: Worker
  readonly #clock: Clock
  readonly #path: string
  readonly #waiting = new Map<number, Waiting>()
  readonly #held = new Set<Promise<unknown>>()
  readonly #exited: Promise<void>
  #lastId = 0
  #closing: Promise<void> | undefined
  #dead: HoldfastError | undefined

  private constructor(settings: WorkerSettings, clock: Clock) {
    this.#clock = clock
    this.#path = settings.path
    this.#worker = new Worker(new URL('./worker.js', import.meta.url), {
      name: 'holdfast-sqlite',
      workerData: settings,
      // Flags of the parent, such as a test runner's loaders, are not for this thread.
      execArgv: [],
    })
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        this.#fail(new Error('the thread ended'))
        resolve()
      })
    })
    this.#worker.on('message', (reply: Reply) => this.#receive(reply))
    this.#worker.on('error', (cause: unknown) => this.#fail(cause))
  }

  static async open(
    settings: WorkerSettings,
    clock: Clock,
  ): Promise<{ readonly link: WorkerLink; readonly database: OpenedDatabase }> {
    const link = new WorkerLink(settings, clock)
    try {
      const database = (await link.#wait(0)) as OpenedDatabase
      return { link, database }
    } catch (error) {
      // The worker has nothing more to do and ends by itself; whoever deletes the file next finds it let go.
      link.#worker.ref()
      await link.#exited
      throw error
    }
  }

  /** Nothing was asked that is not answered, and more can be asked. */
  get isIdle(): boolean {
    return this.#waiting.size === 0 && this.#held.size === 0 && this.#closing === undefined && this.#dead === undefined
  }

  async call<Name extends CallName>(
    call: Name,
    args: Parameters<Calls[Name]>,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<ReturnType<Calls[Name]>> {
    if (this.#closing !== undefined) throw new ClosedError('The SQLite driver')
    return this.#send(call, args, transfer) as Promise<ReturnType<Calls[Name]>>
  }

  /** Keeps the file open until `work` is done, whose calls are answered also when closing has begun. */
  async hold<T>(work: (call: WorkerLink['call']) => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) throw new ClosedError('The SQLite driver')
    const call: WorkerLink['call'] = async (name, args, transfer = []) => this.#send(name, args, transfer) as never
    const working = work(call)
    this.#held.add(working)
    try {
      return await working
    } finally {
      this.#held.delete(working)
    }
  }

  /** Waits for the calls before it, closes the file and ends the thread. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#held)
    if (this.#dead === undefined) await this.#send('close', [], [])
    this.#worker.ref()
    await this.#exited
  }

  #send(call: CallName, args: readonly unknown[], transfer: readonly ArrayBuffer[]): Promise<unknown> {
    if (this.#dead !== undefined) return Promise.reject(this.#dead)
    const id = ++this.#lastId
    const request: Request = [id, call, this.#clock.now(), this.#clock.monotonic(), machineMs(), ...args]
    this.#worker.postMessage(request, transfer)
    return this.#wait(id)
  }

  #wait(id: number): Promise<unknown> {
    if (this.#waiting.size === 0) this.#worker.ref()
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
    })
  }

  #receive([id, value, failure]: Reply): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (this.#waiting.size === 0) this.#worker.unref()
    if (failure === undefined) waiting?.resolve(value)
    else void explainFailure(failure, this.#path).then((error) => waiting?.reject(error))
  }

  #fail(cause: unknown): void {
    this.#dead ??= new UnavailableError(`The thread that works on ${this.#path} ended unexpectedly.`, {
      written: 'unknown',
      cause,
      remedy: 'Close the store and open it again.',
      data: { path: this.#path },
    })
    for (const { reject } of this.#waiting.values()) reject(this.#dead)
    this.#waiting.clear()
  }
}
