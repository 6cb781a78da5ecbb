import { isDeepStrictEqual } from 'node:util'
import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { copyValue, type Value } from '../../codec/value.js'
import { InvalidProgramError, isHoldfastError } from '../../core/errors.js'
import type { Approval, Asked } from '../../runtime/program/program.js'
import { refuseSchema } from '../../json-schema/schema-checker.js'
import type { OwnState, PendingCall } from '../agent-state.js'
import type { JsonObject } from '../model/model-types.js'
import { toJsonSchema } from './schema.js'
import type { Tool } from './tool.js'
import { isStillMade, makeArguments, type Written } from './tool-arguments.js'

/** What a person is asked to agree to. */
interface Question {
  readonly tool: string
  readonly callId: string
  /** Exactly what `execute` will receive. In a question of version 0.1: the arguments before the schema was applied. */
  readonly input: Value
  /** The original arguments, if the tool's schema or `migrate` transforms them. */
  readonly given?: Value
  /** The version of the tool that asks, and that edited arguments are for. */
  readonly version?: string
  /** The arguments are a person's, not the model's. */
  readonly edited?: true
}

interface Answer {
  readonly approved: boolean
  readonly input?: Value
  readonly reason?: string
  readonly result?: Value
}

/** The result of a call that is not made. */
interface Endings {
  readonly denied: (call: PendingCall, reason: string | undefined) => unknown
  readonly instead: (tool: Tool, call: PendingCall, result: Value) => unknown
}

const TOO_LATE = 'Nobody answered in time, so the call was not made.'

/**
 * Asks a person about a call. What is shown is what the tool will run with, after defaults, transforms and migrations;
 * if any of them gives a different result since, or transforms the person's own arguments, they are asked again.
 */
export function planApproval(name: string, tool: Tool, endings: Endings): Approval {
  const { approvalExpiresInMs: expiresInMs, onApprovalExpire = 'deny' } = tool
  return {
    ...(expiresInMs === undefined ? {} : { expiresInMs }),
    onExpire: onApprovalExpire === 'fail' ? 'fail' : { answer: { approved: false, reason: TOO_LATE } },
    needed: (state, given, context) =>
      tool.needsApproval ? isNeeded(tool, state as unknown as OwnState, given as PendingCall, context) : false,
    async question(_state, given, asked) {
      const call = given as PendingCall
      // A denial, and a result that the person provided, run nothing: they count whatever the arguments have become.
      const said = asked?.answer as Answer | undefined
      if (asked !== undefined && said !== undefined && !runs(said)) return asked.question
      const edited = asked && editOf(call, asked)
      const written = edited ?? (asked ? writtenOf(call, asked) : call)
      const read = await makeArguments(tool, call.name, written)
      if (asked !== undefined) {
        if (!('input' in read)) return asked.question
        const shown = edited ? edited.input : (asked.question as unknown as Question).input
        if (await isStillMade(tool, call.name, written, read.input, shown)) return asked.question
      }
      const isEdited = edited !== undefined || isEditedQuestion(asked)
      return describe(name, tool, call, written, 'input' in read ? read.input : written.input, isEdited)
    },
    async answer() {
      const schema = await toJsonSchema(tool.inputSchema, tool.jsonSchema, `tools.${name}`)
      // What can't be checked without the program is checked by it, when it continues.
      const input = refuseSchema(schema as Value) === undefined ? asPart(schema) : { type: 'object' }
      return {
        type: 'object',
        properties: { approved: { type: 'boolean' }, input, reason: { type: 'string' }, result: {} },
        required: ['approved'],
        additionalProperties: false,
      } as Value
    },
    async refuse(given, answered, asked) {
      const call = given as PendingCall
      const edited = runs(answered as Answer) ? editOf(call, asked) : undefined
      if (edited === undefined) return undefined
      const read = await makeArguments(tool, call.name, edited)
      return 'error' in read ? read.error : undefined
    },
    approved: (given, _answered, asked) => {
      const call = given as PendingCall
      const edited = editOf(call, asked)
      if (!asked.exact) return edited === undefined ? call : { ...call, input: edited.input, edited: true }
      const { version: _, ...rest } = call
      const { input, version } = edited ?? writtenOf(call, asked)
      return {
        ...rest,
        input,
        ...(version === undefined ? {} : { version }),
        ...(edited !== undefined || isEditedQuestion(asked) ? { edited: true as const } : {}),
        ready: edited ? edited.input : (asked.question as unknown as Question).input,
      } satisfies PendingCall
    },
    instead: (given, answered) => {
      const { result } = answered as Answer
      return result === undefined ? undefined : endings.instead(tool, given as PendingCall, result)
    },
    denied: (given, answered) => endings.denied(given as PendingCall, (answered as Answer).reason),
  }
}

async function isNeeded(tool: Tool, state: OwnState, call: PendingCall, context: unknown): Promise<boolean> {
  const { needsApproval } = tool
  const read = await makeArguments(tool, call.name, call)
  // Invalid arguments are answered with an error: there is nothing to agree to.
  if (!('input' in read)) return false
  return typeof needsApproval === 'function'
    ? needsApproval(read.input, callContext(state, { context }, call))
    : needsApproval === true
}

/** References count from the root, which is different here, unless the part has its own name. */
function asPart(schema: JsonObject): JsonObject {
  return JSON.stringify(schema).includes('"$ref"') && schema['$id'] === undefined
    ? { ...schema, $id: 'tool-input' }
    : schema
}

/** What the functions of a tool are told about a call. */
function callContext(state: OwnState, { context }: { readonly context: unknown }, { callId }: PendingCall) {
  return { callId, toolCallId: callId, messages: state.messages, context, experimental_context: context }
}

function describe(name: string, tool: Tool, call: PendingCall, written: Written, made: unknown, edited: boolean) {
  const input = toShown(made, name)
  return {
    tool: call.name,
    callId: call.callId,
    input,
    ...(isDeepStrictEqual(input, written.input) ? {} : { given: written.input }),
    ...(tool.version === undefined ? {} : { version: tool.version }),
    ...(edited ? { edited: true as const } : {}),
  } satisfies Question
}

/** Whether the call is to be made after this answer. */
function runs({ approved, result }: Answer): boolean {
  return approved && result === undefined
}

/** The arguments that a person entered in place of those they were shown; undefined if they left them unchanged. */
function editOf({ input: asked, version }: PendingCall, { question, answer, exact }: Asked): Written | undefined {
  const input = (answer as Answer | undefined)?.input
  const shown = question as unknown as Question
  if (input === undefined || [shown.input, shown.given, ...(exact ? [] : [asked])].some(isEqualTo(input))) {
    return undefined
  }
  return { input, version: exact ? shown.version : version }
}

/** What the shown arguments were made from. */
function writtenOf({ input, version }: PendingCall, asked: Asked): Written {
  const shown = asked.question as unknown as Question
  return isEditedQuestion(asked) ? { input: shown.given ?? shown.input, version: shown.version } : { input, version }
}

function isEditedQuestion(asked: Asked | undefined): boolean {
  return asked?.exact === true && (asked.question as unknown as Question).edited === true
}

function isEqualTo(value: Value): (other: Value | undefined) => boolean {
  return (other) => other !== undefined && isDeepStrictEqual(value, other)
}

// Nobody can agree to what can't be shown as it is.
function toShown(made: unknown, name: string): Value {
  try {
    return copyValue(made ?? null, DEFAULT_LIMITS)
  } catch (cause) {
    if (!isHoldfastError(cause)) throw cause
    throw new InvalidProgramError(
      `The schema of tool "${name}" turns its arguments into something that can't be shown to whoever approves them: ${cause.message}`,
      `tools.${name}.inputSchema`,
      'Let it return plain data, and do the rest in execute.',
      { tool: name },
    )
  }
}
