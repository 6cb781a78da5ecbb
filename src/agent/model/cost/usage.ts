/** Tokens of one or more model calls, in one vocabulary for all providers. */
export type Usage = {
  /** All tokens of the prompt, including cached ones. */
  readonly input: number
  /** The part of `input` that was read from the provider's cache. */
  readonly cachedInput: number
  /** The part of `input` that was written to it. */
  readonly cacheWrite: number
  /** All tokens of the reply, including reasoning. */
  readonly output: number
  /** The part of `output` that was reasoning. */
  readonly reasoning: number
  readonly total: number
  /** Who counted: the provider, our estimate, or both (a sum over calls of both kinds, or an incomplete report). */
  readonly basis: 'provider' | 'estimate' | 'mixed'
}

/** What a provider reported; a count that it left out is undefined. */
export interface ReportedUsage {
  readonly input: number | undefined
  readonly cachedInput: number | undefined
  readonly cacheWrite: number | undefined
  readonly output: number | undefined
  readonly reasoning: number | undefined
  readonly total: number | undefined
}

export const NO_USAGE: Usage = {
  input: 0,
  cachedInput: 0,
  cacheWrite: 0,
  output: 0,
  reasoning: 0,
  total: 0,
  basis: 'provider',
}

/** Reads the usage of spec V2 (flat counts) and of V3 and V4 (counts with details), by shape. */
export function readUsage(raw: unknown): ReportedUsage {
  const usage = record(raw)
  const input = usage['inputTokens']
  const output = usage['outputTokens']
  if (typeof input === 'object' || typeof output === 'object') {
    const prompt = record(input)
    const reply = record(output)
    const cachedInput = tokens(prompt['cacheRead'])
    const cacheWrite = tokens(prompt['cacheWrite'])
    const reasoning = tokens(reply['reasoning'])
    return {
      input: tokens(prompt['total']) ?? sum(tokens(prompt['noCache']), cachedInput, cacheWrite),
      cachedInput,
      cacheWrite,
      output: tokens(reply['total']) ?? sum(tokens(reply['text']), reasoning),
      reasoning,
      total: undefined,
    }
  }
  const cachedInput = tokens(usage['cachedInputTokens'])
  const flat = tokens(input)
  return {
    // Some V2 providers leave the cached tokens out of the input. More cached tokens than the total gives that away.
    input: flat !== undefined && cachedInput !== undefined && cachedInput > flat ? flat + cachedInput : flat,
    cachedInput,
    cacheWrite: undefined,
    output: tokens(output),
    reasoning: tokens(usage['reasoningTokens']),
    total: tokens(usage['totalTokens']),
  }
}

/** Fills in what the provider left out with estimates, and says so. They are computed only if needed. */
export function completeUsage(
  reported: ReportedUsage,
  estimate: { readonly input: () => number; readonly output: () => number },
): Usage {
  // No prompt is empty: a server that says so does not count, and its zero would let a conversation outgrow its window.
  const counts = reported.input !== 0
  const given = {
    input: counts ? reported.input : undefined,
    output: counts || reported.output ? reported.output : undefined,
  }
  const missing = (given.input === undefined ? 1 : 0) + (given.output === undefined ? 1 : 0)
  const input = given.input ?? estimate.input()
  const output = given.output ?? estimate.output()
  return {
    input,
    cachedInput: Math.min(reported.cachedInput ?? 0, input),
    cacheWrite: Math.min(reported.cacheWrite ?? 0, input),
    output,
    reasoning: Math.min(reported.reasoning ?? 0, output),
    total: Math.max(reported.total ?? 0, input + output),
    basis: missing === 0 ? 'provider' : missing === 2 ? 'estimate' : 'mixed',
  }
}

/** The sum of several counts. Missing ones are skipped; `basis` is `mixed` when they were counted in different ways. */
export function addUsage(...usages: readonly (Usage | undefined)[]): Usage {
  let [input, cachedInput, cacheWrite, output, reasoning, total] = [0, 0, 0, 0, 0, 0]
  let basis: Usage['basis'] | undefined
  for (const usage of usages) {
    if (usage === undefined || isNothing(usage)) continue
    input += usage.input
    cachedInput += usage.cachedInput
    cacheWrite += usage.cacheWrite
    output += usage.output
    reasoning += usage.reasoning
    total += usage.total
    basis = basis === undefined || basis === usage.basis ? usage.basis : 'mixed'
  }
  return { input, cachedInput, cacheWrite, output, reasoning, total, basis: basis ?? 'provider' }
}

// A sum that starts at zero must not turn estimates into 'mixed'.
function isNothing(usage: Usage): boolean {
  return usage.total === 0 && usage.input === 0 && usage.output === 0
}

function tokens(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
}

function sum(...counts: readonly (number | undefined)[]): number | undefined {
  const known = counts.filter((count) => count !== undefined)
  return known.length === 0 ? undefined : known.reduce((all, count) => all + count, 0)
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
