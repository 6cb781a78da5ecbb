import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import { InvalidProgramError } from '../../core/errors.js'
import { parseRetention, type Retention } from '../../core/retention.js'
import { type SchemaInput, type SchemaOutput, type StandardSchema, validate } from '../../store/standard-schema.js'
import type { Context, RetryPolicy } from '../step/context.js'
import {
  checkDeclaredSchema,
  checkProgramName,
  checkRange,
  checkVersion,
  type ContextOptions,
  planContext,
} from './check-program.js'
import type { FlowPlan } from './program.js'
import { checkPolicy, pickPolicy } from './step-policy.js'

/** What identifies a flow, and how its steps behave unless they say otherwise. */
export interface FlowOptions<RunContext = unknown> extends ContextOptions<RunContext> {
  readonly name: string
  /** A semantic version. Recorded with every checkpoint. */
  readonly version: string
  /** The versions whose threads this one continues, as a semver range. Default: those with the same major. */
  readonly compatibleWith?: string
  /** For steps that don't say otherwise. */
  readonly retry?: RetryPolicy
  /** For steps that don't say otherwise. */
  readonly timeoutMs?: number
  /** How long its threads are kept, and which parts of them. Default: what the store says. */
  readonly retention?: Retention
}

/** A plain async function whose steps are recorded, as the program of a thread. */
export interface FlowProgram<Input = unknown, Output = unknown> {
  readonly kind: 'flow'
  readonly plan: FlowPlan
  /** Never present at runtime: carries the types. */
  readonly '~types'?: { readonly input: Input; readonly output: Output }
}

const OPTIONS: OptionNames<FlowOptions & { input: unknown; output: unknown }> = {
  name: true,
  version: true,
  compatibleWith: true,
  retry: true,
  timeoutMs: true,
  retention: true,
  input: true,
  output: true,
  context: true,
  transientContext: true,
}

type FlowFunction<Input, Output, RunContext> = (
  ctx: Context<Input, RunContext>,
  input: Input,
) => Output | Promise<Output>

/**
 * Turns a function into a program. After a crash it is called again and gets the recorded results of its steps, so what
 * it does between them must be the same every time: no clock, no randomness, no effects outside of `ctx`.
 */
export function flow<Input, Output, RunContext = unknown>(
  options: FlowOptions<RunContext> & { readonly input?: undefined; readonly output?: undefined },
  run: FlowFunction<Input, Output, RunContext>,
): FlowProgram<Input, Output>
export function flow<In extends StandardSchema, Out extends StandardSchema, RunContext = unknown>(
  options: FlowOptions<RunContext> & { readonly input: In; readonly output: Out },
  run: FlowFunction<SchemaOutput<In>, SchemaInput<Out>, RunContext>,
): FlowProgram<SchemaInput<In>, SchemaOutput<Out>>
export function flow<In extends StandardSchema, Output, RunContext = unknown>(
  options: FlowOptions<RunContext> & { readonly input: In; readonly output?: undefined },
  run: FlowFunction<SchemaOutput<In>, Output, RunContext>,
): FlowProgram<SchemaInput<In>, Output>
export function flow<Input, Out extends StandardSchema, RunContext = unknown>(
  options: FlowOptions<RunContext> & { readonly input?: undefined; readonly output: Out },
  run: FlowFunction<Input, SchemaInput<Out>, RunContext>,
): FlowProgram<Input, SchemaOutput<Out>>
export function flow(
  options: FlowOptions & { readonly input?: StandardSchema | undefined; readonly output?: StandardSchema | undefined },
  run: FlowFunction<never, unknown, never>,
): FlowProgram {
  checkOptionNames('flow()', options, OPTIONS)
  const { name, version, compatibleWith, input, output, retention } = options
  checkProgramName(name)
  checkVersion(name, version)
  checkRange(name, compatibleWith)
  const policy = pickPolicy(options)
  checkPolicy(policy, `flow "${name}"`)
  checkDeclaredSchema(input, `input of flow "${name}"`, 'input')
  checkDeclaredSchema(output, `output of flow "${name}"`, 'output')
  if (typeof run !== 'function') {
    throw new InvalidProgramError(
      `Flow "${name}" has nothing to run.`,
      'run',
      'Pass an async function (ctx, input) => … as the second argument.',
    )
  }
  const plan: FlowPlan = {
    kind: 'flow',
    name,
    version,
    compatibleWith,
    policy,
    context: planContext(`flow "${name}"`, options),
    ...(retention === undefined ? {} : { retention: parseRetention(retention) }),
    ...(input && { inputSchema: input }),
    ...(output && { outputSchema: output }),
    checkInput: (value) => (input ? validate(input, value, 'input') : value),
    checkOutput: (value) => (output ? validate(output, value, 'output') : value),
    run: run as FlowPlan['run'],
  }
  return { kind: 'flow', plan }
}
