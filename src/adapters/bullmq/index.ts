export { BullmqEngine, type BullmqOptions, openBullmq } from './engine.js'
export { BullmqWorker, type BullmqWorkerOptions } from './bullmq-worker.js'
export { type DueHint, type HoldfastJob, startJob, type StartInput } from './jobs.js'
