import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Value } from '../codec/value.js'
import type { Context } from '../runtime/step/context.js'
import { recordError } from '../runtime/errors.js'
import type { LiveEvent } from '../runtime/events/events.js'
import { type Internals, internalsOf } from '../runtime/step/call/internals.js'
import type { Update } from '../runtime/program/state/state-shape.js'
import type { AgentOptions, TurnContext } from './agent-options.js'
import type { AgentState, Loop, OwnState } from './agent-state.js'
import type { Message } from './messages/message.js'
import type { ModelEvent, ModelReply } from './model/model-types.js'
import type { PromptSizes } from './messages/sizes.js'
import { providerName } from './model/spans.js'
import { addTally, EMPTY_TALLY, tallyOf, writeTally } from './model/cost/tally.js'
import type { ToolSet } from './tools/tool-set.js'

/** An agent as its nodes see it. */
export interface AgentSetup {
  readonly options: AgentOptions
  readonly tools: ToolSet
  readonly sizes: PromptSizes
}

/** What the author's functions receive. */
export function turnContext(state: OwnState, ctx: Context): TurnContext {
  return {
    state: state as unknown as AgentState,
    context: ctx.context,
    thread: ctx.thread,
    tenant: ctx.tenant,
    runId: ctx.runId,
    abortSignal: ctx.abortSignal,
  }
}

/** An id that stays the same when the step is repeated after a crash. */
export function messageId(ctx: Context, path: string, index = 0): string {
  const parts = JSON.stringify([ctx.tenant, ctx.thread, ctx.branch, ctx.runId, path, index])
  return `msg_${hash('sha256', parts, 'base64url').slice(0, 16)}`
}

/** The calls and results in an update of the conversation, as reported to listeners. */
export function reportCalls(update: Update, step: string): readonly LiveEvent[] {
  return ((update['messages'] ?? []) as readonly Message[]).flatMap(({ id: message, parts }) =>
    parts.flatMap((part): LiveEvent[] => {
      if (part.type === 'tool-call') {
        const { callId, name: tool, input } = part
        return [{ type: 'tool-call', step, message, callId, tool, input }]
      }
      if (part.type !== 'tool-result') return []
      const { callId, name: tool, output } = part
      return [{ type: 'tool-result', step, message, callId, tool, output: output as Value }]
    }),
  )
}

/**
 * What one model call adds to the totals. Also notes it in the record and in the tenant's store.
 * @param isKept the reply becomes a message, which says what it used.
 */
export function spend(setup: AgentSetup, state: OwnState, ctx: Context, reply: ModelReply, isKept: boolean) {
  const { options } = setup
  const internals = internalsOf(ctx)
  const model = reply.message.model ?? { provider: '', id: '' }
  const spent = tallyOf(reply.usage, model, options.prices ?? {})
  const { usage, attempts } = reply
  const cost = spent.unpriced > 0 ? null : spent.cost
  const step = internals.path
  if (isKept) internals.note({ type: 'usage', step, usage: { cost, attempts } })
  else internals.note({ type: 'usage', step, usage: { ...usage, cost, model, attempts } })
  const { input, output, cachedInput: cached } = usage
  internals.watch.usage({
    provider: providerName(model.provider),
    model: model.id,
    actual: model.actual,
    input,
    output,
    cached,
    cost,
  })
  const { thread, branch } = ctx
  const before = state.loop.spent?.branch === branch ? state.loop.spent : undefined
  const id = before?.id ?? `${ctx.runId}:${branch}${scopeOf(step)}`
  const known = before === undefined ? EMPTY_TALLY : (before.tally ?? state.usage)
  const isAll = known === state.usage || isDeepStrictEqual(known, state.usage)
  const total = addTally(state.usage, spent)
  const tally = isAll ? total : addTally(known, spent)
  writeTally(ctx, id, { thread, branch, program: options.name, tally })
  const onBranch: Loop['spent'] = isAll ? { id, branch } : { id, branch, tally }
  return {
    usage: total,
    runUsage: addTally(state.runUsage, spent),
    // Undefined where nothing is new about it: it is not written again.
    spent: isAll && before !== undefined && before.tally === undefined ? undefined : onBranch,
  }
}

/** Where an agent runs inside another program: several of them in one run are counted separately. */
function scopeOf(path: string): string {
  const at = path.lastIndexOf('/')
  return at < 0 ? '' : `:${path.slice(0, at)}`
}

/** Passes what a model call streams to listeners. */
export function relayEvents(internals: Internals, message: string): (event: ModelEvent) => void {
  const { path: step } = internals
  return (event) => {
    const { attempt } = event
    switch (event.type) {
      case 'text-delta':
        return internals.emit({ type: 'token', step, attempt, message, kind: 'text', text: event.text })
      case 'reasoning-delta':
        return internals.emit({ type: 'token', step, attempt, message, kind: 'reasoning', text: event.text })
      case 'tool-input-start': {
        const { callId, name } = event
        return internals.emit({
          type: 'token',
          step,
          attempt,
          message,
          kind: 'tool-input',
          text: '',
          callId,
          tool: name,
        })
      }
      case 'tool-input-delta': {
        const { callId, text } = event
        return internals.emit({ type: 'token', step, attempt, message, kind: 'tool-input', text, callId })
      }
      case 'superseded':
        return internals.emit({ type: 'superseded', step, attempt })
      case 'failure': {
        if (event.delayMs === undefined) return
        const { message, providerCode } = event.failure
        const error = recordError(new Error(message))
        return internals.emit({
          type: 'retry',
          step,
          attempt,
          inMs: event.delayMs,
          error: { ...error, ...(providerCode === undefined ? {} : { code: providerCode }) },
        })
      }
      default:
    }
  }
}
