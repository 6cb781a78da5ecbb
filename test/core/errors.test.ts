import assert from 'node:assert/strict'
import * as errors from '#src/core/errors.js'
import { describe, expectTypeOf, it } from 'vitest'

const { HoldfastError, isHoldfastError } = errors
const cause = new Error('below')

/** One of every class. A class that is missing here fails the first test. */
const EXAMPLES: readonly (readonly [code: errors.ErrorCode, error: errors.HoldfastError])[] = [
  ['conflict', new errors.ConflictError('It changed.', { log: 'x' })],
  ['fenced', new errors.FencedError({ log: 'x', epoch: 1, current: 2 })],
  ['held', new errors.HeldError({ log: 'x', owner: 'w', remainingMs: 5.4 })],
  ['corrupt', new errors.CorruptError('It is damaged.', { lastGood: 'main~1~0123456789ab' }, cause)],
  ['data-loss', new errors.DataLossError('It is gone.', { log: 'x' })],
  ['missing-dependency', new errors.MissingDependencyError('pg', 'npm install pg', { cause })],
  ['missing-key', new errors.MissingKeyError('No key.', { key: 'k' })],
  ['invalid-id', new errors.InvalidIdError('thread id', 'is empty', 'Pass one.')],
  ['invalid-value', new errors.InvalidValueError('$.a', 'is a Map', 'Convert it.', {}, cause)],
  ['invalid-option', new errors.InvalidOptionError('limit', 'is 0', 'Pass 1.')],
  ['missing-context', new errors.MissingContextError('x', ['token'])],
  ['not-found', new errors.NotFoundError('There is none.', 'Check the id.')],
  ['too-large', new errors.TooLargeError('The value', 'bytes', 5, 6, 'Split it.')],
  ['closed', new errors.ClosedError('The store')],
  ['schema-too-new', new errors.SchemaTooNewError('The file', { found: 2, supported: 1 })],
  ['storage', new errors.StorageError('Disk full.', 'Make room.', { reason: 'full', written: 'nothing', cause })],
  ['unavailable', new errors.UnavailableError('No answer.', { written: 'unknown', cause })],
  ['claim-required', new errors.ClaimRequiredError('x', 'step')],
  ['invalid-program', new errors.InvalidProgramError('No such node.', 'edge', 'Declare it.')],
  ['incompatible', new errors.IncompatibleError('It is newer.', 'state-too-new', 'Upgrade.', { from: 2 })],
  ['transaction', new errors.TransactionError('timeout', 'It took too long.', 'Hurry up.', { cause })],
  ['not-executed', new errors.NotExecutedError('The card was declined.', { cause })],
  ['model', new errors.ModelError('It failed.', { kind: 'server', remedy: 'Try later.', retryable: true, cause })],
]

describe('errors', () => {
  it('are all shown here', () => {
    const classes = Object.values(errors).filter(
      (value): value is typeof HoldfastError => typeof value === 'function' && value.prototype instanceof HoldfastError,
    )
    const shown = new Set(EXAMPLES.map(([, error]) => error.constructor.name))
    assert.deepEqual(
      classes.map(({ name }) => name).filter((name) => !shown.has(name)),
      [],
    )
    assert.equal(new Set(EXAMPLES.map(([code]) => code)).size, EXAMPLES.length)
  })

  it.each(EXAMPLES)('%s: a stable code, data, a remedy that ends the message, and its brand', (code, error) => {
    assert.equal(error.code, code)
    assert.equal(error.name, error.constructor.name)
    assert.equal(typeof error.data, 'object')
    assert(error.remedy.length > 5)
    assert(error.message.endsWith(error.remedy))
    assert(error.message.length > error.remedy.length + 1)
    assert.equal(typeof error.retryable, 'boolean')
    assert(error instanceof Error && error instanceof HoldfastError)
    assert(isHoldfastError(error) && isHoldfastError(error, code))
    assert(!isHoldfastError(error, code === 'closed' ? 'held' : 'closed'))
    assert.deepEqual(Object.keys(error).sort(), ['code', 'data', 'name', 'remedy', 'retryable'])
  })

  it('say whether trying again can help', () => {
    const retryable = EXAMPLES.filter(([, error]) => error.retryable).map(([code]) => code)
    assert.deepEqual(retryable.sort(), ['conflict', 'held', 'model', 'transaction', 'unavailable'])
    assert.equal(new errors.TransactionError('statement', 'It was refused.', 'Mend it.').retryable, false)
  })

  it('carry the cause where there is one, and no empty one where there is none', () => {
    const causes = EXAMPLES.filter(([, error]) => error.cause === cause).map(([code]) => code)
    assert.deepEqual(causes.sort(), [
      'corrupt',
      'invalid-value',
      'missing-dependency',
      'model',
      'not-executed',
      'storage',
      'transaction',
      'unavailable',
    ])
    assert(!('cause' in new errors.ClosedError('x')))
    assert(!('cause' in new errors.InvalidValueError('$', 'is odd', 'Change it.')))
  })

  it('of a model call tell its kind, and what needs a package tells what for', () => {
    const error = new errors.ModelError('x', { kind: 'quota', remedy: 'Pay.', retryable: false, data: { status: 429 } })
    assert.equal(error.kind, 'quota')
    assert.deepEqual(error.data, { kind: 'quota', status: 429 })
    assert.match(
      new errors.MissingDependencyError('x', 'npm install x', { what: 'Counting' }).message,
      /^Counting needs/,
    )
  })

  it('are recognised across two copies of the package', async () => {
    const url = new URL('../../dist/core/bundle.js?copy', import.meta.url).href
    const copy = (await import(url)) as typeof errors
    assert.notEqual(copy.HoldfastError, HoldfastError)
    const error = new copy.ClosedError('The other copy')
    assert(!(error instanceof HoldfastError))
    assert(isHoldfastError(error, 'closed'))
    assert(copy.isHoldfastError(new errors.ClosedError('This copy'), 'closed'))
  })

  it('have data whose type follows from the code that was asked for', () => {
    const held: unknown = new errors.HeldError({ log: 'x', owner: 'w', remainingMs: 5 })
    assert(isHoldfastError(held, 'held'))
    expectTypeOf(held.code).toEqualTypeOf<'held'>()
    expectTypeOf(held.data.owner).toEqualTypeOf<string>()
    assert.deepEqual([held.data.owner, held.data.remainingMs], ['w', 5])
    const failed: unknown = new errors.ModelError('x', { kind: 'quota', remedy: 'Pay.', retryable: false })
    assert(isHoldfastError(failed, 'model'))
    expectTypeOf(failed.data.kind).toEqualTypeOf<errors.ModelFailureKind>()
    const closed = (error: unknown) => (isHoldfastError(error, 'pause-closed') ? error.data : undefined)
    expectTypeOf<NonNullable<ReturnType<typeof closed>>['reason']>().toEqualTypeOf<
      'answered' | 'expired' | 'superseded' | 'cancelled'
    >()
    // @ts-expect-error: there is no such code.
    assert(!isHoldfastError(held, 'hold'))
    // What is not of one code may still be of another.
    const other = new errors.ClosedError('x') as errors.HoldfastError
    if (!isHoldfastError(other, 'held')) expectTypeOf(other.code).toEqualTypeOf<errors.ErrorCode>()
  })

  it('are not confused with other values', () => {
    for (const value of [undefined, null, 5, 'closed', {}, new Error('x'), { code: 'closed' }, () => 1])
      assert(!isHoldfastError(value))
  })

  it('tell what to do about damage, with and without a checkpoint that verifies', () => {
    assert.match(new errors.CorruptError('x', { lastGood: 'main~1~0123456789ab' }).message, /main~1~0123456789ab/)
    assert.match(new errors.CorruptError('x', {}).message, /restore a backup/)
  })
})
