import { isDeepStrictEqual } from 'node:util'
import { cloneValue, showValue } from '../../codec/clone.js'
import type { Value } from '../../codec/value.js'
import type { State } from '../../log/entry/ops.js'
import type { Approval, Asked, NodePlan } from '../program/program.js'
import type { Update } from '../program/state/state-shape.js'
import type { TaskRecord } from '../run/state/run-state.js'
import type { Activation } from '../step/call/activation.js'
import type { GraphScope } from './graph-scope.js'

/** What a person said at a gate. */
export interface Gate {
  readonly approved: boolean
  readonly update?: Update | undefined
}

/** What a node may run with, or what it becomes instead. */
export type Agreed = { readonly input: unknown } | { readonly denied: unknown }

export const OPEN_GATE: Gate = { approved: true }

const GATE_SCHEMA: Value = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, update: { type: 'object' } },
  required: ['approved'],
  additionalProperties: false,
}

/** Where people are asked about one task: before it runs, and before its result counts. */
export class Gates {
  readonly #scope: GraphScope
  readonly #node: NodePlan
  readonly #task: TaskRecord
  readonly #path: string
  readonly #activation: Activation

  constructor(scope: GraphScope, node: NodePlan, task: TaskRecord, path: string, activation: Activation) {
    this.#scope = scope
    this.#node = node
    this.#task = task
    this.#path = path
    this.#activation = activation
  }

  /** Whether someone decides what becomes of the result. A "no" must not be ignored because the program no longer asks. */
  get hasExit(): boolean {
    return this.#node.pauseAfter || this.#said('after') !== undefined
  }

  /**
   * The gate before a node, if it has one and none of it was begun. What a person said there before counts, even if the
   * program no longer asks.
   */
  enter(begun: boolean): Gate | Promise<Gate> {
    if (!begun && this.#node.pauseBefore) return this.#gate('before')
    const said = this.#said('before')
    return said === undefined ? OPEN_GATE : this.#read(said)
  }

  /** Asks whether the result counts. */
  leave(): Promise<Gate> {
    return this.#gate('after')
  }

  /** Asks a person first, where the node says so: before anything is recorded as begun. */
  agree(state: State, begun: boolean): Agreed | Promise<Agreed> {
    const input = showInput(this.#task.input)
    const { approval } = this.#node
    if (approval === undefined) return { input }
    // A "no" must not be ignored because the rule returns something else today.
    const before = this.#activation.asking.askedAt(`${this.#path} approval`)
    const needed = before !== undefined || begun || approval.needed(state, input, this.#scope.run.context)
    return needed ? this.#askFirst(approval, input, state, { before, begun, needed }) : { input }
  }

  async #askFirst(
    approval: Approval,
    input: Value | undefined,
    state: State,
    asked: {
      readonly before: Asked | undefined
      readonly begun: boolean
      readonly needed: boolean | Promise<boolean>
    },
  ): Promise<Agreed> {
    const { before, begun } = asked
    if (!(await asked.needed)) return { input }
    if (begun) {
      // It was begun with what was agreed to then.
      const agreed = (before?.answer as { readonly approved?: boolean } | undefined)?.approved === true
      return { input: before && agreed ? await approval.approved(input, before.answer, before) : input }
    }
    const shown = (await approval.question(state, input, before)) as Value
    const jsonSchema = typeof approval.answer === 'function' ? await approval.answer(input) : approval.answer
    const isSame = before !== undefined && isDeepStrictEqual(before.question, shown)
    const shownWith = (answer: unknown): Asked => ({
      question: shown,
      answer: answer as Value,
      ...(isSame && !before.exact ? {} : { exact: true }),
    })
    const answer = await this.#activation.ask('approval', `${this.#path} approval`, shown, {
      jsonSchema,
      refuse: (given) => approval.refuse?.(input, given, shownWith(given)),
      ...(approval.expiresInMs === undefined ? {} : { expiresInMs: approval.expiresInMs }),
      ...(approval.onExpire === undefined ? {} : { onExpire: approval.onExpire }),
    })
    const { approved } = answer as { readonly approved?: boolean }
    if (!approved) return { denied: await approval.denied(input, answer) }
    const instead = await approval.instead?.(input, answer)
    return instead === undefined
      ? { input: await approval.approved(input, answer, shownWith(answer)) }
      : { denied: instead }
  }

  /** Asks whether to continue. An answer may bring an update of its own. */
  async #gate(kind: 'before' | 'after'): Promise<Gate> {
    const { node, input } = this.#task
    const result = kind === 'after' ? this.#scope.recordOf(this.#task)?.result : undefined
    const shown = {
      node,
      ...(input === undefined ? {} : { input }),
      ...(result === undefined ? {} : { update: result }),
    }
    return this.#read(await this.#activation.ask(kind, `${this.#path} ${kind}`, shown, { jsonSchema: GATE_SCHEMA }))
  }

  async #read(answer: unknown): Promise<Gate> {
    const { approved, update } = answer as { readonly approved: boolean; readonly update?: unknown }
    const { shape } = this.#scope.plan
    return { approved, update: update === undefined ? undefined : await shape.check(update, 'the answer’s update') }
  }

  #said(kind: 'before' | 'after'): unknown {
    return this.#activation.asking.askedAt(`${this.#path} ${kind}`)?.answer
  }
}

/** A copy: while records are written behind the program, a task's input is still the object that the program made. */
export function showInput(input: unknown): Value | undefined {
  return showValue(cloneValue(input as Value | undefined))
}
