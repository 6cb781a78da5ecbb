import { keepReading } from './event-stream.js'
import { pathId, pathName } from './path-id.js'
import type { Transport } from './transport.js'
import type {
  BranchInfo,
  CheckpointItem,
  Facts,
  Json,
  OutcomeEvent,
  PauseInfo,
  RunOutcome,
  RunRequest,
  StartedRun,
  ThreadEvent,
  ThreadId,
  ThreadInfo,
} from './types.js'

interface Signal {
  readonly signal?: AbortSignal
}

/** One branch of a thread on a server. */
export class ThreadClient {
  readonly id: ThreadId
  readonly branch: string
  readonly #transport: Transport
  readonly #path: string

  constructor(transport: Transport, id: ThreadId, branch: string) {
    this.id = id
    this.branch = branch
    this.#transport = transport
    this.#path = `/v1/threads/${pathId(id)}`
  }

  /** What the index says about it, and all of its branches. */
  show(): Promise<{ readonly thread: ThreadInfo; readonly branches: readonly BranchInfo[] }> {
    return this.#get('')
  }

  /** State, run and open questions, now or at a checkpoint. */
  state(at?: string): Promise<Facts> {
    return this.#get('/state', { at })
  }

  /** Checkpoints, newest first: of this branch, or of all. */
  history(
    options: {
      readonly allBranches?: boolean
      readonly limit?: number
      readonly cursor?: string
      /** Also the events of each entry. */
      readonly events?: boolean
    } = {},
  ): Promise<{ readonly checkpoints: readonly CheckpointItem[]; readonly cursor?: string }> {
    const { allBranches = false, ...rest } = options
    return this.#transport.json(`${this.#path}/history`, {
      query: { ...rest, branch: allBranches ? undefined : this.branch },
    })
  }

  async branches(): Promise<readonly BranchInfo[]> {
    const { branches } = await this.#transport.json<{ branches: readonly BranchInfo[] }>(`${this.#path}/branches`)
    return branches
  }

  /** What changed in the state between two checkpoints. */
  async diff(from: string, to: string): Promise<readonly Json[]> {
    const query = { from, to }
    return (await this.#transport.json<{ differences: readonly Json[] }>(`${this.#path}/diff`, { query })).differences
  }

  /** How this branch differs from another, and where they diverged. */
  compare(other: string): Promise<{ readonly common?: string; readonly state: readonly Json[] }> {
    return this.#transport.json(`${this.#path}/compare`, { query: { one: this.branch, other } })
  }

  /** Walks every entry and says what is wrong with it. */
  verify(
    options: { readonly repair?: boolean } = {},
  ): Promise<{ readonly ok: boolean; readonly [field: string]: Json }> {
    return this.#post('/verify', options)
  }

  /** Leaves input for a worker and returns at once. */
  start(request: RunRequest): Promise<StartedRun> {
    return this.#transport.json(`${this.#path}/runs`, { body: this.#keyed(request) })
  }

  /** Starts a run and waits until it completes, pauses or fails. */
  run(request: RunRequest, options: Signal & { readonly timeoutMs?: number } = {}): Promise<RunOutcome> {
    const { signal, timeoutMs } = options
    return this.#transport.json(`${this.#path}/runs/wait`, { body: this.#keyed(request), query: { timeoutMs }, signal })
  }

  /**
   * Starts a run and yields events; the last one has the type `outcome`. A connection that breaks is reopened: no
   * recorded event is missed and none comes twice.
   */
  async *stream(request: RunRequest, { signal }: Signal = {}): AsyncGenerator<ThreadEvent | OutcomeEvent> {
    const body = this.#keyed(request)
    let started = false
    const connect = (lastId: string | undefined) =>
      this.#transport.send(`${this.#path}/runs/stream`, { body, signal, headers: resumeFrom(lastId) })
    for await (const { data } of keepReading(connect, ({ event }) => event === 'outcome', signal)) {
      const event = JSON.parse(data) as ThreadEvent
      if (event.type === 'started' && started) continue
      started ||= event.type === 'started'
      yield event
    }
  }

  /** What happens from now on, or after an event, until the signal is aborted. */
  async *events(options: Signal & { readonly after?: string } = {}): AsyncGenerator<ThreadEvent> {
    const { after, signal } = options
    const connect = (lastId: string | undefined) =>
      this.#transport.send(`${this.#path}/events`, {
        query: { branch: this.branch, after },
        signal,
        headers: resumeFrom(lastId),
      })
    for await (const { data } of keepReading(connect, () => false, signal)) yield JSON.parse(data) as ThreadEvent
  }

  cancel(reason?: string): Promise<void> {
    return this.#post('/cancel', reason === undefined ? {} : { reason })
  }

  /** Requests another attempt at a run that failed. */
  async resume(): Promise<boolean> {
    return (await this.#post<{ resumed: boolean }>('/resume')).resumed
  }

  signal(
    name: string,
    value?: unknown,
    options: { readonly key?: string } = {},
  ): Promise<{ signal: 'sent' | 'known' }> {
    return this.#post('/signals', { name, value, ...options })
  }

  async pauses(): Promise<readonly PauseInfo[]> {
    return (await this.#get<{ pauses: readonly PauseInfo[] }>('/pauses')).pauses
  }

  answer(pause: string, value: unknown): Promise<void> {
    return this.#post(`/pauses/${pathName(pause)}/answer`, { value })
  }

  /** Reports the outcome of an effect whose outcome was unknown. */
  resolveEffect(pause: string, value: unknown): Promise<void> {
    return this.#post(`/effects/${pathName(pause)}/resolve`, { value })
  }

  defer(pause: string, until: Date): Promise<void> {
    return this.#post(`/pauses/${pathName(pause)}/defer`, { until: until.toISOString() })
  }

  /** Creates a branch from a checkpoint, by default the newest, with changes. */
  async fork(
    options: {
      readonly at?: string
      readonly name?: string
      readonly set?: object
      readonly update?: object
      readonly effects?: 'ask' | 'allow' | 'deny'
      readonly reads?: 'live' | 'recorded'
    } = {},
  ): Promise<ThreadClient> {
    const body = { branch: this.branch, ...options }
    const { branch } = await this.#transport.json<ThreadInfo>(`${this.#path}/fork`, { body })
    return new ThreadClient(this.#transport, this.id, branch)
  }

  replay(): Promise<{ readonly status: 'identical' | 'incomplete' | 'differs'; readonly [field: string]: Json }> {
    return this.#post('/replay')
  }

  /** The thread as one portable text, as `holdfast import` reads it. */
  async export(options: { readonly allBranches?: boolean; readonly redact?: boolean } = {}): Promise<string> {
    const { allBranches = false, redact } = options
    const query = { branch: allBranches ? undefined : this.branch, redact }
    return (await this.#transport.send(`${this.#path}/export`, { query })).text()
  }

  tag(name: string, at?: string): Promise<{ readonly tag: string; readonly checkpoint: string }> {
    return this.#send('PUT', `/tags/${pathName(name)}`, at === undefined ? {} : { at })
  }

  async untag(name: string): Promise<void> {
    await this.#send('DELETE', `/tags/${pathName(name)}`)
  }

  /** Removes the thread with all its branches. */
  async erase(): Promise<void> {
    await this.#transport.json(this.#path, { method: 'DELETE' })
  }

  // A separate key: a request whose response got lost can be sent again, and does not run twice.
  #keyed(request: RunRequest): RunRequest {
    return { branch: this.branch, key: `client-${crypto.randomUUID()}`, ...request }
  }

  #get<Answer>(path: string, query: Readonly<Record<string, string | undefined>> = {}): Promise<Answer> {
    return this.#transport.json(`${this.#path}${path}`, { query: { branch: this.branch, ...query } })
  }

  #post<Answer>(path: string, body: object = {}): Promise<Answer> {
    return this.#send('POST', path, body)
  }

  #send<Answer>(method: string, path: string, body?: object): Promise<Answer> {
    return this.#transport.json(`${this.#path}${path}`, { method, body, query: { branch: this.branch } })
  }
}

function resumeFrom(lastId: string | undefined): Readonly<Record<string, string>> {
  return lastId === undefined ? {} : { 'last-event-id': lastId }
}
