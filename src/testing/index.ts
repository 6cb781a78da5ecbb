export { type ChaosProxy, startChaosProxy } from './chaos-proxy.js'
export { type DriverSetup, driverSuite, type SuiteFramework, type TestContext } from './driver-suite.js'
export { makeAppend, makeEntry } from './entries.js'
export { type DriverMethod, type FaultMoment, type FaultyDriver, faultyDriver } from './faulty-driver.js'
export {
  type ModelFaults,
  type ModelServer,
  type ModelServerCounters,
  type ModelServerOptions,
  type ModelServerRequest,
  type RecordedRequest,
  type ReplyHandler,
  type ScriptedAnswer,
  type ScriptedError,
  type ScriptedReply,
  type ScriptedToolCall,
  type ScriptedUsage,
  startModelServer,
} from './model-server.js'
export { replayFixture } from './replay-fixture.js'
export { runtimeSuite, type RuntimeSuiteOptions } from './runtime-suite.js'
export { storeSuite, type StoreSuiteOptions } from './store-suite.js'
export { virtualClock, type VirtualClock } from './virtual-clock.js'
