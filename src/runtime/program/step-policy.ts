import { InvalidProgramError } from '../../core/errors.js'
import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import type { RetryPolicy, StepOptions, StepPolicy } from '../step/context.js'

/** The options of everything that is done as a step is. */
export const POLICY_OPTIONS: OptionNames<StepPolicy> = {
  effect: true,
  retry: true,
  timeoutMs: true,
  keyTtlMs: true,
  reconcile: true,
  settleMs: true,
  onUnknown: true,
}

/** The options of `ctx.step`. */
export const STEP_OPTIONS: OptionNames<StepOptions> = {
  ...POLICY_OPTIONS,
  input: true,
  key: true,
  idempotencyKey: true,
}

const RETRY_OPTIONS: OptionNames<RetryPolicy> = {
  attempts: true,
  initialMs: true,
  factor: true,
  maxMs: true,
  jitter: true,
  retryIf: true,
}

type Rule = readonly [name: string, fits: (value: unknown) => boolean, remedy: string]

const EFFECTS: readonly unknown[] = ['read', 'idempotent', 'reconcilable', 'once'] satisfies StepPolicy['effect'][]

const POLICY: readonly Rule[] = [
  ['effect', (value) => EFFECTS.includes(value), "Use 'read', 'idempotent', 'reconcilable' or 'once'."],
  ['timeoutMs', isAbove0, 'Use milliseconds above 0, or leave it out for no limit.'],
  ['settleMs', isAtLeast0, 'Use a number of milliseconds, 0 or more.'],
  ['keyTtlMs', isAbove0, 'Use milliseconds above 0.'],
  ['reconcile', isFunction, 'Pass a function (key, input) => { outcome }.'],
  ['onUnknown', (value) => value === 'pause' || value === 'fail', "Use 'pause' or 'fail'."],
  ['retry', (value) => typeof value === 'object' && value !== null, 'Pass an object such as { attempts: 3 }.'],
]

const RETRY: readonly Rule[] = [
  ['attempts', (value) => Number.isSafeInteger(value) && isAbove0(value), 'Use a whole number, 1 or more.'],
  ['initialMs', isAtLeast0, 'Use a number of milliseconds, 0 or more.'],
  ['factor', (value) => isAtLeast0(value) && (value as number) >= 1, 'Use a number, 1 or more.'],
  ['maxMs', isAtLeast0, 'Use a number of milliseconds, 0 or more.'],
  ['jitter', (value) => isAtLeast0(value) && (value as number) <= 1, 'Use a number from 0 to 1.'],
  ['retryIf', isFunction, 'Pass a function (error) => boolean.'],
]

/** Refuses a policy that could only fail, or silently do something else, once a step has gone wrong. */
export function checkPolicy(policy: StepPolicy, owner: string): void {
  checkRules(policy, POLICY, owner)
  if (policy.retry !== undefined) {
    checkOptionNames(`${owner}.retry`, policy.retry, RETRY_OPTIONS)
    checkRules(policy.retry, RETRY, `${owner}.retry`)
  }
  if (policy.effect === 'reconcilable' && policy.reconcile === undefined) {
    throw new InvalidProgramError(
      `${owner} is reconcilable, but has no function that asks what happened.`,
      `${owner}.reconcile`,
      "Pass reconcile: (key, input) => …, or use effect: 'once' to ask a person.",
    )
  }
}

/** The part of a policy that a program may set for all its steps. */
export function pickPolicy({ retry, timeoutMs }: Pick<StepPolicy, 'retry' | 'timeoutMs'>): StepPolicy {
  return { ...(retry !== undefined && { retry }), ...(timeoutMs !== undefined && { timeoutMs }) }
}

function checkRules(values: object, rules: readonly Rule[], owner: string): void {
  for (const [name, fits, remedy] of rules) {
    const value: unknown = (values as Record<string, unknown>)[name]
    if (value === undefined || fits(value)) continue
    const shown = typeof value === 'number' || typeof value === 'string' ? JSON.stringify(value) : `a ${typeof value}`
    throw new InvalidProgramError(`${owner}.${name} is ${shown}.`, `${owner}.${name}`, remedy)
  }
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}

function isAtLeast0(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function isAbove0(value: unknown): boolean {
  return isAtLeast0(value) && (value as number) > 0
}
