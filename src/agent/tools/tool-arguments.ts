import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { cloneValue } from '../../codec/clone.js'
import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { copyValue, type Value } from '../../codec/value.js'
import { andThen, nowOrLater } from '../../core/async/at-once.js'
import { TimeLimit } from '../../runtime/program/time-limit.js'
import type { PendingCall } from '../agent-state.js'
import { validateWith } from './schema.js'
import { LIMIT, type Tool } from './tool.js'

/** Arguments as somebody wrote them, and the version of the tool that they are for. */
export interface Written {
  readonly input: Value
  readonly version?: string | undefined
}

export type ReadArguments =
  | { readonly input: unknown }
  | { readonly error: string }
  /** They are for another version of the tool, which has no `migrate`. */
  | { readonly refusal: true }

/** The arguments as the current tool parses them: migrated to its version, and checked. */
export function makeArguments(tool: Tool, name: string, written: Written): ReadArguments | Promise<ReadArguments> {
  let input: Value | Promise<Value> = written.input
  if (written.version !== tool.version) {
    if (tool.migrate === undefined) return { refusal: true }
    input = nowOrLater(tool.migrate(written.input, written.version))
  }
  const validating = andThen(input, (current) =>
    validateWith(tool.inputSchema, current, tool[LIMIT] ?? new TimeLimit()),
  )
  return andThen(validating, (validated): ReadArguments => {
    if (validated.ok) return { input: validated.value }
    const problems = validated.problems.map((problem) => `- ${problem}`).join('\n')
    return { error: `The arguments of ${name} do not fit, so nothing was done:\n${problems}` }
  })
}

/**
 * The arguments that a call is about: those that were agreed to, or else what the tool parses from what the model
 * wrote.
 */
export async function argumentsOf(tool: Tool, call: PendingCall): Promise<ReadArguments> {
  return call.ready === undefined ? makeArguments(tool, call.name, call) : { input: cloneValue(call.ready) }
}

/**
 * The arguments for `execute`. What was agreed to runs only while the tool still parses what was written the same way.
 */
export function readCall(tool: Tool, call: PendingCall): ReadArguments | Promise<ReadArguments> {
  return call.ready === undefined ? makeArguments(tool, call.name, call) : readAgreed(tool, call, call.ready)
}

async function readAgreed(tool: Tool, call: PendingCall, ready: Value): Promise<ReadArguments> {
  const read = await makeArguments(tool, call.name, call)
  if (!('input' in read)) return read
  if (await isStillMade(tool, call.name, call, read.input, ready)) return { input: cloneValue(ready) }
  const error = `The tool ${call.name} has changed since this call was approved, and would now be run with other arguments. Nothing was done. Call it again if it is still wanted.`
  return { error }
}

/** The call with its arguments as the tool parses them, if that differs and is the same each time. */
export async function showCall(tool: Tool, call: PendingCall): Promise<PendingCall> {
  if (call.ready !== undefined) return call
  const read = await makeArguments(tool, call.name, call)
  const ready = 'input' in read ? toStored(read.input) : undefined
  if (ready === undefined || isDeepStrictEqual(ready, call.input)) return call
  await wait(2)
  const again = await makeArguments(tool, call.name, call)
  return 'input' in again && isDeepStrictEqual(toStored(again.input), ready) ? { ...call, ready } : call
}

/**
 * Whether the tool parses these arguments into what was shown. A default such as the time or a random id differs each
 * time: if two attempts differ from each other, what was shown stands.
 */
export async function isStillMade(
  tool: Tool,
  name: string,
  written: Written,
  made: unknown,
  shown: Value,
): Promise<boolean> {
  const first = toStored(made)
  if (first !== undefined && isDeepStrictEqual(first, shown)) return true
  // Long enough for a clock to advance.
  await wait(2)
  const again = await makeArguments(tool, name, written)
  if (first === undefined || !('input' in again)) return false
  const second = toStored(again.input)
  return second !== undefined && agrees(shown, first, second)
}

function agrees(shown: Value, first: Value, second: Value): boolean {
  if (isDeepStrictEqual(first, second)) return isDeepStrictEqual(shown, first)
  if (!isContainer(shown) || !isContainer(first) || !isContainer(second)) return kindOf(shown) === kindOf(first)
  const names = Object.keys(first)
  const hasSame = (other: object) => isDeepStrictEqual(Object.keys(other).sort(), [...names].sort())
  if (kindOf(shown) !== kindOf(first) || !hasSame(shown) || !hasSame(second)) return false
  return names.every((name) => agrees(shown[name] as Value, first[name] as Value, second[name] as Value))
}

function isContainer(value: Value): value is { readonly [key: string]: Value } {
  return ['object', 'array'].includes(kindOf(value))
}

function kindOf(value: Value): string {
  if (Array.isArray(value)) return 'array'
  if (value instanceof Date) return 'date'
  if (value instanceof Uint8Array) return 'bytes'
  return value === null ? 'null' : typeof value
}

/** In the form in which it is stored; undefined for what can't be. */
function toStored(made: unknown): Value | undefined {
  try {
    return copyValue(made ?? null, DEFAULT_LIMITS)
  } catch {
    return undefined
  }
}
