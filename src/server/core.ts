import type { FlowProgram, Holdfast, Thread, Worker } from '../index.js'
import { InvalidOptionError } from '../errors.js'
import { HttpProblem } from './http/problem.js'
import { StreamSlots } from './http/stream-slots.js'
import { LiveHub } from './live/live-hub.js'
import type { ServerLimits, ServerOptions, ServerProgram } from './options.js'

/** A thread with its program, whichever that is. */
export type AnyThread = Thread<unknown, Readonly<Record<string, unknown>>, unknown>

/** What all dialects share: the store, the programs, the worker, the listeners, and the limits. */
export class ServerCore {
  readonly hf: Holdfast
  readonly hub: LiveHub
  readonly limits: ServerLimits
  readonly slots: StreamSlots
  readonly programs: ReadonlyMap<string, ServerProgram>
  readonly options: ServerOptions
  readonly #stopping = new AbortController()
  #worker: Worker | undefined

  constructor(hf: Holdfast, options: ServerOptions, limits: ServerLimits) {
    this.hf = hf
    this.hub = new LiveHub((log, heard) => hf.onLive(log, (event, isElsewhere) => isElsewhere && heard(event)))
    this.options = options
    this.limits = limits
    this.slots = new StreamSlots(limits.streamsPerPrincipal)
    const programs = new Map<string, ServerProgram>()
    for (const program of options.programs) {
      const { name } = program.plan
      if (programs.has(name)) {
        throw new InvalidOptionError('programs', `holds "${name}" twice`, 'Pass one version of each program.')
      }
      programs.set(name, program)
    }
    this.programs = programs
  }

  /** Aborted when the server stops. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** Runs what is due in this process, and notifies those who follow a thread. */
  startWorker(): void {
    const { worker = {}, programs } = this.options
    if (worker === false || programs.length === 0) return
    this.#worker = this.hf.worker({
      ...worker,
      programs,
      handleSignals: false,
      onEvent: (event) => {
        if (event.type === 'event') this.hub.publish(event.log, event.event)
        else if (event.type === 'ended' || event.type === 'stopped') this.hub.ended(event.log)
        else if (event.type === 'error' && event.log !== undefined) this.hub.ended(event.log)
        worker.onEvent?.(event)
      },
    })
  }

  /** Ends the streams, then the worker. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#worker?.stop()
  }

  /** A thread with the program that is named, that recorded it, or that is the only one. */
  async thread(hf: Holdfast, id: Parameters<Holdfast['thread']>[1], branch: string, wanted?: string) {
    const program = wanted === undefined ? await this.#programOf(hf, id, branch) : this.program(wanted)
    return { program, thread: hf.thread(program as FlowProgram, id, { branch }) as unknown as AnyThread }
  }

  program(name: string): ServerProgram {
    const found = this.programs.get(name)
    if (found !== undefined) return found
    throw new HttpProblem(404, 'not-found', `There is no program "${name.slice(0, 100)}".`, {
      remedy: `This server has: ${[...this.programs.keys()].join(', ') || 'none'}.`,
      fields: { field: 'program' },
    })
  }

  async #programOf(hf: Holdfast, id: Parameters<Holdfast['thread']>[1], branch: string): Promise<ServerProgram> {
    const [summary] = (await hf.threads({ thread: id, branch, limit: 1 })).threads
    const recorded = summary?.metadata['holdfast.program']
    if (typeof recorded === 'string') return this.program(recorded)
    const [only, other] = this.programs.values()
    if (only !== undefined && other === undefined) return only
    throw new HttpProblem(400, 'invalid-option', 'The program of a new thread must be named.', {
      remedy: `Send "program", one of: ${[...this.programs.keys()].join(', ') || 'none'}.`,
      fields: { field: 'program' },
    })
  }
}
