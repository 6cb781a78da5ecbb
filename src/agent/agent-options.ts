import { checkOptionNames, type OptionNames } from '../core/wording/option-names.js'
import type { Retention } from '../core/retention.js'
import type { Value } from '../codec/value.js'
import { InvalidProgramError } from '../core/errors.js'
import type { Durable, Frequency } from '../runtime/run/record/record-policy.js'
import type { ContextOptions } from '../runtime/program/check-program.js'
import type { Migrations } from '../runtime/program/program.js'
import type { Shape } from '../runtime/program/state/state-key.js'
import type { AgentState } from './agent-state.js'
import { checkPrices, findPrice, type PriceTable } from './model/cost/cost.js'
import type { TokenCounter } from './messages/estimate.js'
import { checkModel } from './model/model.js'
import type { ModelRetryOptions } from './model/attempt/model-retry.js'
import type { LanguageModel, ModelSettings, ToolChoice } from './model/model-types.js'
import type { AnyTool } from './tools/tool-set.js'

/** What the agent's own functions receive. */
export interface TurnContext<S extends Shape = Shape, RunContext = unknown> {
  readonly state: AgentState<S>
  /** What the caller of this run passed along. */
  readonly context: RunContext
  readonly thread: string
  readonly tenant: string
  /** The id of the run. */
  readonly runId: string
  readonly abortSignal: AbortSignal
}

/** What may differ in one turn. What is omitted stays as the agent has it. */
export interface StepSettings {
  readonly model?: LanguageModel
  readonly instructions?: string
  /** Names of the tools to show to the model. */
  readonly tools?: readonly string[]
  readonly toolChoice?: ToolChoice
  /** Merged over the agent's settings. */
  readonly settings?: ModelSettings
}

/** What a run or a thread may spend, checked before each model call. A run that would exceed it ends as `limited`. */
export interface Budget {
  readonly tokens?: number
  /** In the currency of `prices`. */
  readonly cost?: number
  /** What it limits. Default 'run'. */
  readonly per?: 'run' | 'thread'
}

/** When older turns are summarized, and how much of the newest stays verbatim. */
export interface CompactionOptions {
  /** The model's window in tokens. If omitted, older turns are summarized only when the provider rejects a prompt. */
  readonly window?: number
  /** The fraction of the window above which older turns are summarized. Default 0.75. */
  readonly at?: number
  /** The fraction of the window that recent turns may fill verbatim. Default 0.3. */
  readonly keep?: number
  /** How many messages the model is shown at most before older turns are summarized. Default: no limit. */
  readonly maxMessages?: number
  /** How many recent messages stay verbatim then. Default: half of `maxMessages`. */
  readonly keepMessages?: number
  /** Writes the summaries. Default: the agent's model. */
  readonly model?: LanguageModel
  /** Its instructions. */
  readonly instructions?: string
  readonly maxSummaryTokens?: number
  /** Default: an estimate from the characters, calibrated by what the provider counted before. */
  readonly count?: TokenCounter
}

/** What an agent consists of. Everything but name, version and model has a default. */
export interface AgentOptions<S extends Shape = Shape, RunContext = unknown> extends ContextOptions<RunContext> {
  readonly name: string
  /** A semantic version. Recorded with every run. */
  readonly version: string
  /** An AI SDK language model. */
  readonly model: LanguageModel
  /** The system prompt; a function is called for every turn. */
  readonly instructions?: string | ((turn: TurnContext<S, RunContext>) => string | Promise<string>)
  readonly tools?: Readonly<Record<string, AnyTool>>
  /** Your own keys next to the conversation; tools update them. */
  readonly state?: S
  readonly settings?: ModelSettings
  readonly toolChoice?: ToolChoice
  /** Called before each model call, to change what that one turn uses. */
  readonly prepareStep?: (
    turn: TurnContext<S, RunContext> & { readonly turn: number },
  ) => StepSettings | undefined | void | Promise<StepSettings | undefined | void>
  /**
   * Called after every turn, whether its tools have run or the model only said something. `true` ends the run. After a
   * reply without calls, `false` lets the run end as usual; returning text continues it, and the model reads the text
   * as a message from the user.
   */
  readonly isComplete?: (turn: TurnContext<S, RunContext>) => boolean | string | Promise<boolean | string>
  /** Model calls in one run; a run that would need more ends as `limited`. Default 50. */
  readonly maxTurns?: number
  /** How many tool calls of one reply are executed; the model is told that the others were not. Default 128. */
  readonly maxCallsPerReply?: number
  /** What may be spent before no further model call is made. Default: no limit. */
  readonly budget?: Budget
  /** Prices per million tokens, by model; needed for `budget.cost`. */
  readonly prices?: PriceTable
  /**
   * Called before the next turn of a run that was interrupted or paused; what it returns is merged into `memory`. A key
   * that is undefined stays as it is.
   */
  readonly onResume?: (
    turn: TurnContext<S, RunContext>,
  ) =>
    | Readonly<Record<string, Value | undefined>>
    | undefined
    | void
    | Promise<Readonly<Record<string, Value | undefined>> | undefined | void>
  /** Default: only when the provider says that a prompt is too long. `false`: never. */
  readonly compaction?: CompactionOptions | false
  /** How model calls are retried. Default: up to 6 attempts within 2 minutes. */
  readonly retry?: ModelRetryOptions
  /** How long one attempt of a model call may take, in milliseconds. Default 10 minutes. */
  readonly timeoutMs?: number
  /** How long a stream may be silent, in milliseconds. Default: as long as `timeoutMs` allows. */
  readonly idleTimeoutMs?: number
  /** Whether replies are streamed, so that `thread.stream()` has tokens. Default true. */
  readonly stream?: boolean
  /** How often runs write, unless they say otherwise. Default 'step'. */
  readonly frequency?: Frequency
  readonly durability?: Durable
  /** How long its threads are kept, and which parts of them. Default: what the store says. */
  readonly retention?: Retention
  /** The versions whose threads this one continues. Default: those with the same major. */
  readonly compatibleWith?: string
  /** For the keys in `state`; raise it when their meaning changes. Default 1. */
  readonly stateVersion?: number
  readonly migrations?: Migrations
  /** From the names that tools once had to their current names. */
  readonly toolAliases?: Readonly<Record<string, string>>
}

const BUDGET: OptionNames<Budget> = { tokens: true, cost: true, per: true }
const RETRY: OptionNames<ModelRetryOptions> = { attempts: true, initialMs: true, maxMs: true, totalMs: true }
const COMPACTION: OptionNames<CompactionOptions> = {
  window: true,
  at: true,
  keep: true,
  maxMessages: true,
  keepMessages: true,
  model: true,
  instructions: true,
  maxSummaryTokens: true,
  count: true,
}
const SETTINGS: OptionNames<ModelSettings> = {
  maxOutputTokens: true,
  temperature: true,
  topP: true,
  topK: true,
  presencePenalty: true,
  frequencyPenalty: true,
  stopSequences: true,
  seed: true,
  reasoning: true,
  responseFormat: true,
  providerOptions: true,
  headers: true,
}
const OPTIONS: OptionNames<AgentOptions> = {
  name: true,
  version: true,
  model: true,
  instructions: true,
  tools: true,
  state: true,
  settings: true,
  toolChoice: true,
  prepareStep: true,
  isComplete: true,
  maxTurns: true,
  maxCallsPerReply: true,
  budget: true,
  prices: true,
  onResume: true,
  compaction: true,
  retry: true,
  timeoutMs: true,
  idleTimeoutMs: true,
  stream: true,
  frequency: true,
  durability: true,
  retention: true,
  compatibleWith: true,
  stateVersion: true,
  migrations: true,
  toolAliases: true,
  context: true,
  transientContext: true,
}

/** Refuses what could only fail once a conversation has started. */
export function checkAgentOptions(options: AgentOptions): void {
  checkOptionNames('agent()', options, OPTIONS)
  checkOptionNames('agent({ budget })', options.budget, BUDGET)
  checkOptionNames('agent({ compaction })', options.compaction || undefined, COMPACTION)
  checkOptionNames('agent({ settings })', options.settings, SETTINGS)
  checkOptionNames('agent({ retry })', options.retry, RETRY)
  checkModel(options.model)
  const { budget, prices, compaction, instructions } = options
  const refuse = (field: string, problem: string, remedy: string) => {
    throw new InvalidProgramError(`The option ${field} of agent "${options.name}" ${problem}.`, field, remedy)
  }
  if (instructions !== undefined && typeof instructions !== 'string' && typeof instructions !== 'function') {
    refuse('instructions', 'is neither text nor a function', 'Pass the system prompt.')
  }
  for (const name of ['prepareStep', 'isComplete', 'onResume'] as const) {
    if (options[name] !== undefined && typeof options[name] !== 'function') {
      refuse(name, 'must be a function', 'Pass a function, or leave it out.')
    }
  }
  for (const name of ['maxTurns', 'maxCallsPerReply'] as const) {
    const count = options[name]
    if (count !== undefined && !(Number.isSafeInteger(count) && count >= 1)) {
      refuse(name, `is ${String(count)}`, 'Use a whole number, 1 or more.')
    }
  }
  if (prices !== undefined) checkPrices(prices)
  for (const field of ['tokens', 'cost'] as const) {
    const value = budget?.[field]
    if (value !== undefined && !(value > 0)) refuse(`budget.${field}`, `is ${String(value)}`, 'Use a number above 0.')
  }
  if (budget?.cost !== undefined && prices === undefined) {
    refuse('budget.cost', 'cannot be enforced without prices', 'Pass prices: what a million tokens cost, by model.')
  }
  if (compaction) {
    if (compaction.model !== undefined) {
      checkModel(compaction.model)
      const { provider, modelId: id } = compaction.model
      if (budget?.cost !== undefined && findPrice(prices ?? {}, { provider, id }) === undefined) {
        refuse('prices', `has no price of ${provider}/${id}`, 'Add one: budget.cost counts the summaries too.')
      }
    }
    const { window, at = 0.75, keep = 0.3, maxMessages, keepMessages } = compaction
    if (maxMessages !== undefined && !(Number.isSafeInteger(maxMessages) && maxMessages >= 2)) {
      refuse('compaction.maxMessages', `is ${String(maxMessages)}`, 'Use a whole number, 2 or more.')
    }
    if (keepMessages !== undefined) {
      const fits = Number.isSafeInteger(keepMessages) && keepMessages >= 1 && keepMessages < (maxMessages ?? 0)
      if (!fits) {
        const remedy = 'Use a whole number, 1 or more, below compaction.maxMessages.'
        refuse('compaction.keepMessages', `is ${String(keepMessages)}`, remedy)
      }
    }
    if (window !== undefined && !(window >= 256)) {
      refuse('compaction.window', `is ${String(window)}`, 'Use the number of tokens that the model takes.')
    }
    if (!(at > 0 && at <= 1)) refuse('compaction.at', `is ${String(at)}`, 'Use a number above 0 and up to 1.')
    if (!(keep >= 0 && keep < at)) refuse('compaction.keep', `is ${String(keep)}`, 'Use a number below compaction.at.')
  }
}
