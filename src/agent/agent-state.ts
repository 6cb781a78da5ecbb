import type { Value } from '../codec/value.js'
import { InvalidProgramError } from '../core/errors.js'
import { append, last, merge, type Shape, type StateKeyKind, type StateOf } from '../runtime/program/state/state-key.js'
import type { Update } from '../runtime/program/state/state-shape.js'
import type { Message } from './messages/message.js'
import { EMPTY_TALLY, type Tally } from './model/cost/tally.js'

/** Why a run of an agent ended. */
export type Ending = {
  readonly reason: /** The model had nothing more to do. */
    | 'finished'
    /** The reply reached its length limit. */
    | 'length'
    /** The provider withheld the reply. */
    | 'content-filter'
    /** The agent's own `isComplete` said so. */
    | 'complete'
    | 'max-turns'
    | 'token-budget'
    | 'cost-budget'
    | 'other'
  /** For people. */
  readonly message: string
}

/** What the model sees instead of the messages before `upTo`. The messages themselves stay. */
export type Summary = {
  readonly text: string
  /** How many messages, starting with the first, it stands for. */
  readonly upTo: number
  /** The id of the last of them: if another message is there, as on a branch that was edited, it stands for none. */
  readonly last?: string
  readonly at: number
}

/** How often runs were resumed, and what starting over would have cost. */
export type Resumes = {
  readonly count: number
  /** Tokens of recorded model calls that a restart of the run would have spent again, across all resumes. */
  readonly tokensSaved: number
}

/** A tool call to execute. */
export type PendingCall = {
  readonly callId: string
  readonly name: string
  readonly input: Value
  /** The version of the tool that was shown to the model. */
  readonly version?: string
  /** A person changed the arguments. */
  readonly edited?: true
  /** What a person was shown and agreed to: exactly this runs. Absent if nobody was asked. */
  readonly ready?: Value
  /** The id of the message that will hold the result. */
  readonly message: string
}

/** What the loop needs to know between two steps. */
export type Loop = {
  readonly next: 'model' | 'tools' | 'compact' | 'end'
  readonly calls: readonly PendingCall[]
  /** The run and the claim under which the last turn was made: a different claim means that the run was resumed. */
  readonly run: string
  readonly claim: string
  /** The size of the last prompt with its reply, as the provider counted it. */
  readonly measured: Measured | null
  /** How many messages there were when the provider said that the prompt is too long. */
  readonly overflowAt: number
  /** How many messages there were when a summary failed. */
  readonly failedAt: number
  /**
   * A reply without calls that `isComplete` has yet to be asked about: how many messages there were with it, and how it
   * would end the run.
   */
  readonly spoke?: { readonly count: number; readonly ending: Ending } | null
  /**
   * What was spent on this branch; forks start at zero. Without a tally it is the usage of the thread, as on a branch
   * that was never forked: what is known is not stored twice.
   */
  readonly spent: { readonly id: string; readonly branch: string; readonly tally?: Tally } | null
}

export type Measured = {
  readonly tokens: number
  /** How many messages there were. */
  readonly count: number
  /** Where the prompt began. */
  readonly from: number
  /** The provider's count relative to our estimate. */
  readonly ratio: number
}

const LOOP: Loop = {
  next: 'model',
  calls: [],
  run: '',
  claim: '',
  measured: null,
  overflowAt: -1,
  failedAt: -1,
  spent: null,
}

const OWN = {
  messages: append<Message>(),
  /** Working memory: shown to the model with the instructions, refreshed when a run is resumed. */
  memory: merge<Record<string, Value>>(undefined, { initial: () => ({}) }),
  /** Model calls of this run. */
  turn: last<number>(undefined, { initial: 0 }),
  /** What the whole thread used. */
  usage: last<Tally>(undefined, { initial: () => EMPTY_TALLY }),
  /** What this run used. */
  runUsage: last<Tally>(undefined, { initial: () => EMPTY_TALLY }),
  /** How the last run ended; null while one is in progress. */
  ended: last<Ending | null>(undefined, { initial: null }),
  summary: last<Summary | null>(undefined, { initial: null }),
  resumes: last<Resumes>(undefined, { initial: () => ({ count: 0, tokensSaved: 0 }) }),
  /** Versions of the tools that were last shown to the model, for those that have one. */
  toolVersions: last<Readonly<Record<string, string>>>(undefined, { initial: () => ({}) }),
  loop: merge<Loop>(undefined, { initial: () => LOOP }),
} as const satisfies Shape

export type OwnState = StateOf<typeof OWN>

/** The state of an agent: its own keys, and those that its author declared. */
export type AgentState<S extends Shape = Shape> = Omit<OwnState, 'loop'> & StateOf<S>

/** The shape of an agent's state. Refuses keys that the agent uses itself. */
export function agentShape(state: Shape): Shape {
  const taken = Object.keys(state).find((name) => Object.hasOwn(OWN, name))
  if (taken !== undefined) {
    throw new InvalidProgramError(
      `The state of an agent already has a key "${taken}" of its own.`,
      `state.${taken}`,
      `Use another name than ${Object.keys(OWN).join(', ')}.`,
      { key: taken },
    )
  }
  return { ...OWN, ...state }
}

/** One update that does what two do in a row. */
export function joinUpdates(before: Update, next: Update, state: Shape): Update {
  checkOwnUpdate(next, state)
  const joined: Record<string, unknown> = { ...before }
  for (const [name, value] of Object.entries(next)) {
    if (value === undefined) continue
    const kind = name === 'memory' ? 'merge' : state[name]?.kind
    const earlier = Object.hasOwn(before, name) ? before[name] : undefined
    joined[name] = earlier === undefined ? value : joinValues(kind, earlier, value, name)
  }
  return joined
}

function joinValues(kind: StateKeyKind | undefined, before: unknown, next: unknown, name: string): unknown {
  switch (kind) {
    case 'append':
      return [...toList(before), ...toList(next)]
    case 'merge': {
      // Anything but an object is refused with its path when the update is checked.
      if (typeof next !== 'object' || next === null) return next
      const given = Object.entries(next).filter(([, value]) => value !== undefined)
      return { ...(before as object), ...Object.fromEntries(given) }
    }
    case 'reduced':
      throw new InvalidProgramError(
        `A tool updates "${name}" twice in one call, which only its reducer could put together.`,
        `state.${name}`,
        'Collect what changes, and call update once.',
        { key: name },
      )
    default:
      return next
  }
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value]
}

/** The part of a state that the author's code may change: the declared keys and the memory. */
function checkOwnUpdate(update: object, state: Shape): void {
  const foreign = Object.keys(update).find((name) => name !== 'memory' && !Object.hasOwn(state, name))
  if (foreign === undefined) return
  throw new InvalidProgramError(
    `A tool updates "${foreign}", which is not declared in the agent's state.`,
    `state.${foreign}`,
    `Use one of: ${['memory', ...Object.keys(state)].join(', ')}.`,
    { key: foreign },
  )
}
