export type Argument = string | Buffer
export type Reply = string | number | Buffer | null | readonly Reply[]

// As ioredis itself says: with anything narrower a client of the user's own does not fit.
// oxlint-disable-next-line typescript/no-explicit-any
type Listener = (...args: any[]) => void

/** The part of an ioredis client, single or cluster, that the driver uses. */
export interface RedisLike {
  readonly status: string
  readonly isCluster?: boolean
  readonly options: object
  connect(): Promise<unknown>
  disconnect(): void
  duplicate(): RedisLike
  call(command: string, ...args: Argument[]): Promise<unknown>
  callBuffer(command: string, ...args: Argument[]): Promise<unknown>
  pipeline(): PipelineLike
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  on(event: string, listener: Listener): unknown
  off(event: string, listener: Listener): unknown
  /** Clusters only. */
  nodes?(role: 'master'): RedisLike[]
  /** Clusters only: which nodes serve a slot, as `host:port`, the master first. */
  readonly slots?: readonly (readonly string[] | undefined)[]
}

interface PipelineLike {
  call(command: string, ...args: Argument[]): unknown
  callBuffer(command: string, ...args: Argument[]): unknown
  exec(): Promise<[error: Error | null, result?: unknown][] | null>
}

/** What the driver needs of the `ioredis` package itself. */
export interface IoredisModule {
  readonly Redis: new (options: object) => RedisLike
  readonly Cluster: new (nodes: readonly object[], options: object) => RedisLike
}
