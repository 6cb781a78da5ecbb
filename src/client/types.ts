/** A plain id, or named parts. */
export type ThreadId = string | Readonly<Record<string, string>>

/** Anything that JSON can hold. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** A program's state as JSON: dates as ISO text, bigints as digits, bytes as base64. */
export type JsonState = Readonly<Record<string, Json>>

/** One branch of a thread, as the index shows it. Times are ISO text. */
export interface ThreadInfo {
  /** As paths hold it. */
  readonly id: string
  readonly thread: ThreadId
  readonly branch: string
  /** The thread whose run started it. */
  readonly parent?: ThreadId
  readonly status: string
  readonly entries: number
  readonly checkpoint: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly expiresAt: string | null
  readonly wakeAt: string | null
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, string | number | boolean>>
  readonly claimedBy: string | null
  /** How long it stays claimed without a heartbeat, in milliseconds. */
  readonly leaseMs: number | null
}

/** A branch and those that were forked from it. */
export interface BranchInfo {
  readonly name: string
  readonly status: string
  readonly entries: number
  readonly head: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly from?: { readonly branch: string; readonly seq: number; readonly checkpoint: string }
  readonly forks: readonly BranchInfo[]
}

/** A question that is waiting for an answer. */
export interface PauseInfo {
  readonly id: string
  readonly kind: 'question' | 'approval' | 'before' | 'after' | 'unknown-effect' | 'permission'
  readonly step: string
  readonly question: Json
  /** The JSON Schema of a valid answer. */
  readonly schema?: Json
  readonly askedAt: string
  readonly expiresAt?: string
  readonly deferred?: { readonly until: string; readonly at: string; readonly by?: string }
  readonly refused?: { readonly reason: string; readonly at: string; readonly by?: string }
}

/** A question with the thread that asks it. */
export interface ThreadPauseInfo extends PauseInfo {
  readonly pathId: string
  readonly thread: ThreadId
  readonly branch: string
}

/** Everything known about the thread at a checkpoint. */
export interface Facts {
  readonly id: string
  readonly at: string
  readonly hash: string
  readonly status: string
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly program?: string
  readonly version?: string
  readonly stateVersion?: number
  readonly run?: { readonly id: string; readonly status: string; readonly program: string; readonly version: string }
  readonly pauses: readonly PauseInfo[]
  readonly state: JsonState
}

/** A checkpoint as history lists it. */
export interface CheckpointItem {
  readonly id: string
  readonly branch: string
  readonly seq: number
  readonly kind: string
  readonly at: string
  readonly bytes: number
  readonly hash: string
  readonly parent?: string
  /** The nodes, tools, model calls and steps that it records; with `events`. */
  readonly steps?: readonly {
    readonly kind: 'model' | 'tool' | 'node' | 'step'
    readonly name: string
    readonly path: string
    readonly status: 'started' | 'completed' | 'failed' | 'unknown'
    readonly model?: string
  }[]
  /** The events of the entry, if requested: steps, questions, answers, costs. */
  readonly events?: readonly ThreadEvent[]
}

/** An answer that somebody gave, and what it was given to. */
export interface AnswerInfo {
  readonly pathId: string
  readonly thread: ThreadId
  readonly branch: string
  readonly pause: string
  readonly kind: PauseInfo['kind']
  readonly step: string
  readonly question: Json
  readonly value: Json
  readonly by?: string
  readonly at: string
  readonly askedAt: string
  readonly checkpoint: string
}

/** Which worker holds which threads now, and which threads are waiting for a worker. */
export interface WorkersInfo {
  readonly workers: readonly { readonly owner: string; readonly threads: number; readonly leaseMs: number }[]
  readonly held: readonly ThreadInfo[]
  readonly queue: readonly ThreadInfo[]
  readonly more?: boolean
}

/** How long threads are kept, and what a sweep would remove now. */
export interface RetentionInfo {
  readonly policy: string
  readonly report: {
    readonly threads: number
    readonly cut: number
    readonly entries: number
    readonly bytes: number
  }
  readonly threads: readonly {
    readonly id: string
    readonly thread: ThreadId
    readonly branch?: string
    readonly why: 'expired' | 'capped'
    readonly branches: number
    readonly entries: number
    readonly bytes: number
  }[]
}

/** What was counted in equal intervals, by name. */
export interface SeriesInfo {
  /** When the first interval begins, in milliseconds since 1970. */
  readonly from: number
  readonly stepMs: number
  readonly values: Readonly<Record<string, readonly number[]>>
}

/** What failed, as recorded. */
export interface ErrorInfo {
  readonly name: string
  readonly message: string
  readonly code?: string
}

interface OutcomeBase {
  readonly id: string
  readonly thread: ThreadId
  readonly branch: string
  readonly run: string
  readonly checkpoint?: string
  readonly state: JsonState
  /** How often the run was resumed. */
  readonly resumed?: number
  /** For the end user, if there is something they should know. */
  readonly message?: string
}

/** How a run ended. */
export type RunOutcome = OutcomeBase &
  (
    | { readonly status: 'completed'; readonly output?: Json }
    /** A limit of the program ended it, such as an agent's `maxTurns`. */
    | { readonly status: 'limited'; readonly limit: string; readonly reason: string; readonly output?: Json }
    | { readonly status: 'paused'; readonly pauses: readonly PauseInfo[]; readonly waiting: readonly Json[] }
    | {
        readonly status: 'failed'
        readonly error: ErrorInfo
        readonly canResume: boolean
        readonly pauses: readonly PauseInfo[]
      }
    | { readonly status: 'incompatible'; readonly reason: string }
    | { readonly status: 'pruned'; readonly ended?: 'completed' | 'cancelled' }
  )

/** A run that was requested. */
export interface StartedRun {
  readonly id: string
  readonly thread: ThreadId
  readonly branch: string
  readonly input: 'queued' | 'taken'
  readonly run?: string
  readonly checkpoint?: string
}

/** What a run works on, and how. */
export interface RunRequest {
  /** What the run works on. For an agent: text, or messages. */
  readonly input?: unknown
  /** Required for a new thread if the server has several programs. */
  readonly program?: string
  readonly branch?: string
  /**
   * Identifies the input: sent again, it does not run twice. Default: a random key, so that a lost response can be
   * requested again.
   */
  readonly key?: string
  readonly busy?: 'queue' | 'reject' | 'interrupt'
}

/** Something that happened on a thread. What it holds depends on its `type`. */
export interface ThreadEvent {
  readonly type: string
  /** The id of the record that it is part of, or that came before it. */
  readonly id?: string
  readonly [field: string]: unknown
}

/** The last event of a run's stream. */
export interface OutcomeEvent extends ThreadEvent {
  readonly type: 'outcome'
  readonly outcome: RunOutcome
}

/** An item of the store. */
export interface ItemInfo {
  readonly key: string
  readonly value: Json
  readonly version: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly expiresAt: string | null
  readonly score?: number
}

/** What a program of the server is called, and what it takes. */
export interface ProgramInfo {
  readonly name: string
  readonly version: string
  readonly kind: 'agent' | 'graph' | 'flow'
  readonly input?: Json
}

/** An error as RFC 9457 has it, with Holdfast's code. */
export interface ProblemInfo {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: string
  readonly remedy?: string
  readonly retryable: boolean
  readonly [field: string]: unknown
}
