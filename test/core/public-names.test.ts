import * as holdfast from 'holdfast'
import * as testing from 'holdfast/testing'
import { describe, expect, it } from 'vitest'

// The public face changes on purpose: a name added or removed shows here and in the changelog. Types are not seen.
describe('the public names', () => {
  it('of holdfast', () => {
    expect(Object.keys(holdfast).sort()).toMatchInlineSnapshot(`
      [
        "CancelledError",
        "ClaimRequiredError",
        "ClosedError",
        "ConflictError",
        "CorruptError",
        "DataLossError",
        "END",
        "EffectUnknownError",
        "FencedError",
        "Graph",
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
        "PauseClosedError",
        "RunStream",
        "START",
        "SchemaTooNewError",
        "StepCollection",
        "StepFailedError",
        "StepScope",
        "StepStore",
        "StepTimeoutError",
        "StorageError",
        "Thread",
        "ThreadView",
        "TooLargeError",
        "TransactionError",
        "UnavailableError",
        "Worker",
        "addUsage",
        "append",
        "checkMessage",
        "checkMessages",
        "costOf",
        "estimateTokens",
        "flow",
        "fromAiSdkMessages",
        "fromOpenAiMessages",
        "graph",
        "isHoldfastError",
        "last",
        "loadTokenCounter",
        "makeMessage",
        "merge",
        "openDriver",
        "openHoldfast",
        "push",
        "reduced",
        "remove",
        "send",
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
        "runtimeSuite",
        "startChaosProxy",
        "startModelServer",
        "storeSuite",
        "virtualClock",
      ]
    `)
  })
})
