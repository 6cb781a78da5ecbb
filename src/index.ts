export type { AgentOptions, Budget, TurnContext } from './agent/agent-options.js'
export type { AgentState } from './agent/agent-state.js'
export { agent, type AgentProgram } from './agent/agent.js'
export type { Part } from './agent/messages/message-part.js'
export { type Message, textOf } from './agent/messages/message.js'
export type { AgentInput } from './agent/messages/read-input.js'
export type { PriceTable } from './agent/model/cost/cost.js'
export type { LanguageModel } from './agent/model/model-types.js'
export { tenantUsage } from './agent/model/cost/tally.js'
export type { Usage } from './agent/model/cost/usage.js'
export { mcpTools } from './agent/tools/mcp-tools.js'
export { agentTool, type AgentToolOptions } from './agent/tools/agent-tool.js'
export { type Tool, tool, type ToolContext, type ToolOptions } from './agent/tools/tool.js'
export { redactCommon } from './codec/secret/redact-common.js'
export type { Redact } from './codec/secret/redactor.js'
export type { Value } from './codec/value-types.js'
export {
  ConflictError,
  type ErrorCode,
  HoldfastError,
  isHoldfastError,
  ModelError,
  NotExecutedError,
} from './core/errors.js'
export type { ThreadId, ThreadIdInput } from './core/ids.js'
export type { Retention, StoreRetention } from './core/retention.js'
export { Holdfast, type ThreadOptions } from './holdfast/holdfast.js'
export type { ThreadPage, ThreadQuery, ThreadSummary } from './holdfast/thread-list.js'
export { fileVault } from './log/keys/file-vault.js'
export type { KeyOptions } from './log/keys/key-options.js'
export type { KeyVault } from './log/keys/key-options.js'
export { openHoldfast, type OpenOptions } from './open.js'
export {
  CancelledError,
  EffectUnknownError,
  PauseClosedError,
  StepFailedError,
  StepTimeoutError,
} from './runtime/errors.js'
export type { RunEvent } from './runtime/events/events.js'
export type { EventsOptions } from './runtime/events/follow-events.js'
export type { RunStream } from './runtime/events/run-stream.js'
export type { CheckpointFacts } from './runtime/history/checkpoint.js'
export type { ForkOptions } from './runtime/history/fork.js'
export type { CheckpointInfo, HistoryOptions } from './runtime/history/list-checkpoints.js'
export type { ReplayReport } from './runtime/history/replay.js'
export type { AnswerOptions } from './runtime/pause/answer.js'
export type { ThreadPause } from './runtime/pause/bulk.js'
export { flow, type FlowOptions, type FlowProgram } from './runtime/program/flow.js'
export { END, type Send, send, START } from './runtime/program/graph/graph-declaration.js'
export {
  type Graph,
  graph,
  type GraphOptions,
  type GraphProgram,
  type NodeFunction,
  type NodeOptions,
} from './runtime/program/graph/graph.js'
export type { Approval, Migration, Migrations, TypedProgram } from './runtime/program/program.js'
export {
  append,
  last,
  merge,
  reduced,
  type StateKey,
  type StateOf,
  type UpdateOf,
} from './runtime/program/state/state-key.js'
export type { OpenPause, Outcome } from './runtime/run/state/outcome.js'
export type { Frequency } from './runtime/run/record/record-policy.js'
export type { OnCorrupt } from './runtime/run/request/on-log.js'
export type { Waiting } from './runtime/run/state/run-state.js'
export type { EnqueueOptions, RunOptions } from './runtime/run/request/run-options.js'
export type {
  Context,
  Effect,
  PauseOptions,
  ReceiveOptions,
  Reconciled,
  RetryPolicy,
  SleepOptions,
  StepContext,
  StepOptions,
  TransactionOptions,
} from './runtime/step/context.js'
export type { ThreadCheckpoint } from './runtime/history/checkpoint.js'
export type { Thread } from './runtime/thread.js'
export type { CheckpointView, ThreadView } from './runtime/thread-view.js'
export type { WaitOptions } from './runtime/events/follow.js'
export type { WorkerEvent, WorkerOptions } from './runtime/worker/worker-options.js'
export type { Worker } from './runtime/worker/worker.js'
export type { CollectionOptions } from './store/collection-options.js'
export type { Collection } from './store/collection.js'
export type { Item } from './store/item.js'
export type { StandardSchema } from './store/standard-schema.js'
export type { Scope, Store } from './store/store.js'
export type { Observer } from './telemetry/observer.js'
export type { TelemetryOptions } from './telemetry/options.js'
export { mergeMetrics, quantileOf } from './telemetry/process-metrics.js'
export { mergeSeries } from './telemetry/series.js'
