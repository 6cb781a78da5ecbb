/** Everything that the processes of the demo say to each other. */
export type FromWorker =
  | { readonly type: 'ready' }
  /** A conversation is claimed: whoever had it before has lost it. */
  | { readonly type: 'held'; readonly thread: string; readonly at: number }
  /** A run ended, and nothing is held anymore. */
  | { readonly type: 'ended'; readonly thread: string; readonly status: string; readonly reply?: Reply }
  | { readonly type: 'error'; readonly message: string }

/** What a worker knows when it has answered. A hint: the truth is in the store. */
export interface Reply {
  /** How many of the customer's messages are answered. */
  readonly answered: number
  /** What the conversation has used so far. */
  readonly tokens: number
}

export type ToWorker = { readonly type: 'stop' }

export type FromModel =
  | { readonly type: 'ready'; readonly url: string }
  | { readonly type: 'bill'; readonly calls: number; readonly tokens: number }

export type ToModel = { readonly type: 'bill' }

/** What a worker is started with. */
export interface WorkerSettings {
  readonly store: string
  /** A Redis in front of it. */
  readonly cache?: string
  readonly tenant: string
  readonly shop: string
  readonly modelUrl: string
  readonly concurrency: number
  readonly leaseMs: number
  readonly name: string
  readonly shopMs: { readonly before: number; readonly after: number }
  /** What returns and exchanges declare; for showing what a wrong declaration does. */
  readonly effect?: 'read' | 'reconcilable'
}

export interface ModelSettings {
  readonly latencyMs: readonly [least: number, most: number]
}
