import { andThen, nowOrLater } from '../../core/async/at-once.js'
import { InvalidOptionError } from '../../core/errors.js'
import type { Context } from '../../runtime/step/context.js'
import { internalsOf } from '../../runtime/step/call/internals.js'
import type { AgentOptions, StepSettings } from '../agent-options.js'
import type { OwnState } from '../agent-state.js'
import { type AgentSetup, messageId, relayEvents, turnContext } from '../turn.js'
import { findPrice } from './cost/cost.js'
import type { LanguageModel, ModelRequest, ModelTool } from './model-types.js'
import { buildPrompt } from './prompt.js'

/** The call of a turn. It takes time only if the author's code does, or the tools have yet to be described. */
export function prepareCall(setup: AgentSetup, state: OwnState, ctx: Context) {
  const { options, tools } = setup
  const { prepareStep, instructions = '' } = options
  const preparing = prepareStep?.({ ...turnContext(state, ctx), turn: state.turn + 1 })
  return andThen(nowOrLater(preparing), (given) => {
    const step: StepSettings = given ?? {}
    const model = step.model ?? options.model
    checkPriced(setup, model)
    const fixed = step.instructions ?? (typeof instructions === 'function' ? undefined : instructions)
    const text = fixed ?? nowOrLater((instructions as Instructions)(turnContext(state, ctx)))
    checkShown(step, tools)
    return andThen(text, (system) =>
      andThen(tools.describe(), (described) => callOf(setup, state, ctx, { step, model, system, described })),
    )
  })
}

type Instructions = Extract<AgentOptions['instructions'], (...given: never) => unknown>

function checkShown(step: StepSettings, tools: AgentSetup['tools']): void {
  const unknown = step.tools?.find((name) => !tools.names.includes(name))
  if (unknown === undefined) return
  throw new InvalidOptionError(
    'prepareStep.tools',
    `names "${unknown}", which the agent does not have`,
    `Use any of: ${tools.names.join(', ')}.`,
  )
}

function callOf(
  setup: AgentSetup,
  state: OwnState,
  ctx: Context,
  {
    step,
    model,
    system,
    described,
  }: {
    readonly step: StepSettings
    readonly model: LanguageModel
    readonly system: string
    readonly described: readonly ModelTool[]
  },
) {
  const { options } = setup
  const toolChoice = step.toolChoice ?? options.toolChoice
  const request: ModelRequest = {
    messages: buildPrompt(system, state.memory, state.summary, state.messages),
    tools: step.tools === undefined ? described : described.filter(({ name }) => step.tools?.includes(name)),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    settings: { ...options.settings, ...step.settings },
  }
  const internals = internalsOf(ctx)
  const id = messageId(ctx, internals.path)
  const { retry, timeoutMs, idleTimeoutMs, stream } = options
  return {
    model,
    request,
    shown: step.tools ?? setup.tools.names,
    options: {
      clock: internals.clock,
      random: internals.random,
      watch: internals.watch,
      step: internals.path,
      signal: ctx.abortSignal,
      messageId: id,
      onEvent: relayEvents(internals, id),
      sizes: setup.sizes,
      ...(retry === undefined ? {} : { retry }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
      ...(stream === undefined ? {} : { stream }),
    },
  }
}

// A cost budget that misses some calls would never be reached.
function checkPriced({ options }: AgentSetup, model: LanguageModel): void {
  if (options.budget?.cost === undefined) return
  const { provider, modelId: id } = model
  if (findPrice(options.prices ?? {}, { provider, id }) !== undefined) return
  throw new InvalidOptionError('prices', `has no price of ${provider}/${id}`, 'Add one: budget.cost depends on it.')
}
