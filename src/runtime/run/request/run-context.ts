import { DEFAULT_LIMITS } from '../../../codec/limits.js'
import type { Redactor } from '../../../codec/secret/redactor.js'
import { copyValue, type Value } from '../../../codec/value.js'
import { showValue } from '../../../codec/clone.js'
import { InvalidValueError, isHoldfastError, MissingContextError, TooLargeError } from '../../../core/errors.js'
import { type Op, remove, set } from '../../../log/entry/ops.js'
import { type StandardSchema, validate } from '../../../store/standard-schema.js'
import type { ContextPlan, ProgramPlan } from '../../program/program.js'
import { isPlainObject } from '../../program/state/reduce-key.js'
import type { RunState } from '../state/run-state.js'
import type { Request } from './request.js'

/** A context is part of every keyframe of its run; anything larger belongs in the input or the store. */
const MAX_BYTES = 256 * 1024

/** The context of a run, as its record keeps it. Both absent: there was none, or 0.1 wrote the record. */
export interface KeptContext {
  readonly context?: Value
  /** The names of what was brought and not kept; `true`: all of it. */
  readonly transient?: true | readonly string[]
}

/**
 * Checks the context that a caller passes, and what is kept of it.
 * @param isWhole nobody else provides the rest: what the program needs must be there.
 */
export async function keepContext(
  plan: ProgramPlan,
  given: unknown,
  redactor: Redactor | undefined,
  isWhole: boolean,
): Promise<{ readonly made: unknown; readonly kept: KeptContext }> {
  const { schemas = [], transient = [] } = plan.context ?? {}
  if (given === undefined && !isWhole) return { made: undefined, kept: {} }
  let made = given
  // What a tool needs is only checked: each would make something else of it.
  for (const [i, schema] of schemas.entries()) {
    // The rest is recorded, or is brought by whoever runs it.
    if (!isWhole && (await lacksOnly(schema, made))) continue
    const checked = await validate(schema, made, 'context')
    if (i === 0 && plan.context?.isMade) made = checked
  }
  if (made === undefined) return { made, kept: {} }
  if (transient === true) return { made, kept: { transient } }
  const { live, rest } = split(made, transient)
  const context = redactor ? redactor.value(keep(rest)) : keep(rest)
  return { made, kept: { context, ...(live.length === 0 ? {} : { transient: live }) } }
}

/**
 * Why a run without a recorded context can't begin with what this process has; undefined if it can. Its tools would get
 * undefined, or something unexpected.
 */
export async function contextMisfit(plan: ProgramPlan, given: unknown, thread: string): Promise<Error | undefined> {
  try {
    for (const schema of plan.context?.schemas ?? []) await validate(schema, given, 'context')
    return undefined
  } catch (error) {
    return given === undefined ? new MissingContextError(thread, ['context']) : (error as Error)
  }
}

/** Whether nobody passed anything for this input. */
export function isBare({ context, transient }: KeptContext): boolean {
  return context === undefined && transient === undefined
}

/** Whether all that is wrong with a part of a context is that other parts are not there. */
async function lacksOnly(schema: StandardSchema, given: unknown): Promise<boolean> {
  if (!isPlainObject(given)) return false
  const { issues = [] } = await schema['~standard'].validate(given)
  const isMissing = ([first]: readonly unknown[]) => {
    const name = typeof first === 'object' && first !== null ? (first as { readonly key: unknown }).key : first
    return typeof name === 'string' && !Object.hasOwn(given, name)
  }
  return issues.length > 0 && issues.every(({ path }) => path !== undefined && isMissing(path))
}

/** Refuses what would get lost on its way to the process that runs it. */
export function refuseTransient({ transient }: KeptContext): void {
  if (transient === undefined) return
  const field = transient === true ? 'context' : `context.${transient[0]}`
  throw new InvalidValueError(
    field,
    'is transient, and would not reach the process that runs this input',
    'Leave it out, and let the worker bring it: hf.worker({ context: () => … }).',
  )
}

/**
 * What a program gets: what was kept, plus what this process provides of the rest. A worker's context also fills in
 * what nobody passed, and never replaces what somebody did.
 */
export function contextFor({ context, transient }: KeptContext, given: unknown, fillsIn: boolean): unknown {
  // Another's input that waits before this one's: who drives it now must not stand in for whoever gave it.
  if (context === undefined && transient === undefined) return fillsIn ? given : undefined
  if (transient === true) return given
  if (!isPlainObject(context)) return showValue(context)
  const brought = isPlainObject(given) ? given : {}
  const names = fillsIn ? Object.keys(brought) : (transient ?? [])
  const live = names.filter((name) => Object.hasOwn(brought, name)).map((name) => [name, brought[name]])
  return Object.freeze({ ...Object.fromEntries(live), ...(showValue(context) as object) })
}

/** Refuses to continue with less than the run was started with: its tools would get undefined. */
export function checkBrought(kept: KeptContext, given: unknown, thread: string): void {
  const missing = missingOf(kept, given)
  if (missing.length > 0) throw new MissingContextError(thread, missing)
}

function missingOf({ transient }: KeptContext, given: unknown): readonly string[] {
  if (transient === undefined) return []
  if (transient === true) return given === undefined ? ['context'] : []
  const brought = isPlainObject(given) ? given : {}
  return transient.filter((name) => !Object.hasOwn(brought, name) || brought[name] === undefined)
}

/**
 * The context of a run that is resumed with more. What is passed now counts from here on, and so does what the current
 * program says about it: a version may declare transient what an earlier one recorded, and the other way around.
 */
function joinContexts(before: KeptContext, brought: KeptContext): KeptContext {
  if (brought.context === undefined && brought.transient === undefined) return before
  if (brought.transient === true || before.transient === true) return brought
  const { context, transient = [] } = brought
  const isBoth = isPlainObject(before.context) && isPlainObject(context)
  const earlier = isBoth ? Object.entries(before.context as object).filter(([name]) => !transient.includes(name)) : []
  const isKept = (name: string) => isPlainObject(context) && Object.hasOwn(context, name)
  const names = [...new Set([...(before.transient ?? []).filter((name) => !isKept(name)), ...transient])]
  return {
    ...(isBoth
      ? { context: { ...Object.fromEntries(earlier), ...(context as object) } as Value }
      : context === undefined
        ? {}
        : { context }),
    ...(names.length === 0 ? {} : { transient: names }),
  }
}

/** Ops that note what a run in progress is brought when it is resumed. */
export function bringContext({ run }: RunState, brought: KeptContext): readonly Op[] {
  if (run === undefined || (brought.context === undefined && brought.transient === undefined)) return []
  const joined = joinContexts(run, brought)
  return (['context', 'transient'] as const).flatMap((key) => {
    const value = joined[key]
    if (value !== undefined) return [set(['run', key], value)]
    return run[key] === undefined ? [] : [remove(['run', key])]
  })
}

/**
 * Ops that note what is brought to input that waits and was left without any. What it was given with stays: whoever
 * sends a request again must not change it.
 */
export function bringToQueued({ inputs }: RunState, id: string | undefined, brought: KeptContext): readonly Op[] {
  const at = id === undefined ? -1 : (inputs?.findIndex((input) => input.id === id) ?? -1)
  const queued = inputs?.[at]
  if (queued === undefined || queued.context !== undefined || queued.transient !== undefined) return []
  return (['context', 'transient'] as const).flatMap((key) => {
    const value = brought[key]
    return value === undefined ? [] : [set(['inputs', at, key], value)]
  })
}

/** Several programs in one: what any of them keeps out of the record stays out. */
export function joinContextPlans(plans: readonly (ContextPlan | undefined)[]): ContextPlan | undefined {
  const known = plans.filter((plan) => plan !== undefined)
  if (known.length === 0) return undefined
  return {
    isMade: plans[0]?.isMade ?? false,
    schemas: known.flatMap(({ schemas }) => schemas),
    transient: known.some(({ transient }) => transient === true)
      ? true
      : [...new Set(known.flatMap(({ transient }) => transient as readonly string[]))],
  }
}

function split(given: unknown, transient: readonly string[]) {
  if (!isPlainObject(given)) return { live: [], rest: given }
  const there = Object.entries(given).filter(([, value]) => value !== undefined)
  const isLive = ([name]: readonly [string, unknown]) => transient.includes(name)
  return {
    live: there.filter(isLive).map(([name]) => name),
    rest: Object.fromEntries(there.filter((entry) => !isLive(entry))),
  }
}

function keep(value: unknown): Value {
  if (!isPlainObject(value)) return keepPart(value, 'context', 'transientContext: true')
  const parts = Object.entries(value).map(([name, part]) => {
    return [name, keepPart(part, `context.${name}`, `transientContext: [${JSON.stringify(name)}]`)] as const
  })
  return keepPart(Object.fromEntries(parts), 'context', 'transientContext')
}

function keepPart(value: unknown, field: string, option: string): Value {
  const remedy = `What run({ context }) brings is recorded. Pass plain data, or declare ${option} to leave it out.`
  try {
    return copyValue(value, { ...DEFAULT_LIMITS, maxBytes: MAX_BYTES })
  } catch (cause) {
    if (isHoldfastError(cause, 'too-large')) {
      throw new TooLargeError(field, 'bytes', MAX_BYTES, cause.data.actual, remedy)
    }
    if (!isHoldfastError(cause)) throw cause
    throw new InvalidValueError(field, `can't be recorded: ${cause.message.replace(/\.$/, '')}`, remedy)
  }
}

/**
 * What this process passes to the runs that it drives for a request. A caller's context is for the run that it starts,
 * or the one that it resumes, and no other that is driven on the way: otherwise that run's tools would act for one
 * person with the token of another.
 */
export class CallerContext {
  readonly #request: Request
  /** The one run that it is for. */
  #own: string | undefined

  constructor(request: Request, target: string | undefined) {
    this.#request = request
    this.#own = target
  }

  /** Whether the next run needs something that nobody brought. */
  isMissing(acknowledged: RunState): boolean {
    const next = acknowledged.inputs?.[0]
    if (next === undefined || acknowledged.cancel?.run === next.id) return false
    if (this.#request.misfit && isBare(next)) return true
    return missingOf(next, this.#for(next)).length > 0
  }

  /** The context of the run that is in progress. */
  ofRun({ run }: RunState, acknowledged: RunState): unknown {
    // Nothing of a cancelled run is called anymore, so nothing is passed to it.
    if (run === undefined || (this.#own === undefined && acknowledged.cancel?.run === run.id)) return undefined
    return contextFor(run, this.#for(run), this.#request.options.fillsContext ?? false)
  }

  #for({ id, key }: { readonly id: string; readonly key?: string }): unknown {
    const { context, options } = this.#request
    if (options.fillsContext) return options.fillsOnly === undefined || key === options.fillsOnly ? context : undefined
    this.#own ??= id
    return id === this.#own ? context : undefined
  }
}
