export { type ChaosProxy, startChaosProxy } from './chaos-proxy.js'
export { type DriverSetup, driverSuite, type SuiteFramework } from './driver-suite.js'
export { makeAppend, makeEntry } from './entries.js'
export { virtualClock, type VirtualClock } from './virtual-clock.js'
