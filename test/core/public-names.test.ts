import * as holdfast from 'holdfast'
import * as testing from 'holdfast/testing'
import { describe, expect, it } from 'vitest'

// The public face changes on purpose: a name added or removed shows here and in the changelog. Types are not seen.
describe('the public names', () => {
  it('of holdfast', () => {
    expect(Object.keys(holdfast).sort()).toMatchInlineSnapshot(`
      [
        "ClaimRequiredError",
        "ClosedError",
        "ConflictError",
        "CorruptError",
        "DataLossError",
        "FencedError",
        "HeldError",
        "Holdfast",
        "HoldfastError",
        "InvalidIdError",
        "InvalidOptionError",
        "InvalidValueError",
        "LogStore",
        "MissingDependencyError",
        "MissingKeyError",
        "ModelError",
        "NotExecutedError",
        "NotFoundError",
        "SchemaTooNewError",
        "StorageError",
        "TooLargeError",
        "TransactionError",
        "UnavailableError",
        "addUsage",
        "checkMessage",
        "checkMessages",
        "costOf",
        "estimateTokens",
        "fromAiSdkMessages",
        "fromOpenAiMessages",
        "isHoldfastError",
        "loadTokenCounter",
        "makeMessage",
        "openDriver",
        "openHoldfast",
        "push",
        "remove",
        "set",
        "splice",
        "systemClock",
        "textOf",
        "toAiSdkPrompt",
        "toMessage",
        "toOpenAiMessages",
        "tool",
      ]
    `)
  })

  it('of holdfast/testing', () => {
    expect(Object.keys(testing).sort()).toMatchInlineSnapshot(`
      [
        "driverSuite",
        "faultyDriver",
        "makeAppend",
        "makeEntry",
        "startChaosProxy",
        "startModelServer",
        "storeSuite",
        "virtualClock",
      ]
    `)
  })
})
