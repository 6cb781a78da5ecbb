export { agent, type AgentProgram } from './agent/agent.js'
export type {
  AgentOptions,
  Budget,
  CompactionOptions,
  StepSettings,
  TurnContext,
} from './agent/agent-options.js'
export type { AgentState, Ending, Resumes, Summary } from './agent/agent-state.js'
export type { AiPrompt, AnyAiMessage, SpecVersion } from './agent/ai-sdk-types.js'
export { checkMessage, checkMessages, toMessage } from './agent/check-message.js'
export type { AgentInput } from './agent/read-input.js'
export { costOf, type Price, type PriceTable } from './agent/cost.js'
export { estimateTokens, loadTokenCounter, type TokenCounter } from './agent/estimate.js'
export { fromAiSdkMessages, type FromOptions } from './agent/from-ai-sdk.js'
export { fromOpenAiMessages } from './agent/from-openai.js'
export { type McpClient, type McpOptions, mcpTools, type RefusedTool } from './agent/mcp-tools.js'
export {
  type FinishReason,
  makeMessage,
  type Message,
  type MessageOptions,
  type ModelRef,
  type Role,
  textOf,
} from './agent/message.js'
export type * from './agent/message-part.js'
export type { ModelFailure } from './agent/model-failure.js'
export type { LanguageModel, ModelEvent, ModelSettings, ToolChoice } from './agent/model-types.js'
export type { OpenAiContentPart, OpenAiMessage, OpenAiToolCall } from './agent/openai-types.js'
export { type Tally, tenantUsage, type ThreadUsage } from './agent/tally.js'
export { toAiSdkPrompt } from './agent/to-ai-sdk.js'
export { toOpenAiMessages } from './agent/to-openai.js'
export {
  type Tool,
  tool,
  type ToolContext,
  type ToolOptions,
} from './agent/tool.js'
export { addUsage, type Usage } from './agent/usage.js'
export type { Limits } from './codec/limits.js'
export type { Value } from './codec/value.js'
export type { Clock } from './core/clock.js'
export type { ErrorData, ErrorWithCode } from './core/error-data.js'
export {
  ClaimRequiredError,
  ClosedError,
  ConflictError,
  CorruptError,
  DataLossError,
  type ErrorCode,
  FencedError,
  HeldError,
  HoldfastError,
  InvalidIdError,
  InvalidOptionError,
  InvalidValueError,
  isHoldfastError,
  MissingDependencyError,
  MissingKeyError,
  ModelError,
  type ModelFailureKind,
  NotExecutedError,
  NotFoundError,
  SchemaTooNewError,
  StorageError,
  TooLargeError,
  TransactionError,
  UnavailableError,
} from './core/errors.js'
export { type BranchId, type TenantId, type ThreadId, type ThreadIdInput } from './core/ids.js'
export { describeStoreUrl } from './core/secrets.js'
export { systemClock } from './core/system-clock.js'
export { Holdfast, type ThreadPage, type ThreadQuery, type ThreadSummary } from './holdfast.js'
export type { Claim, ClaimOptions } from './log/claim.js'
export type * from './log/contract.js'
export type { Draft } from './log/draft.js'
export type { OpenedEntry } from './log/entry-opening.js'
export type { EntryBody, Fold } from './log/fold.js'
export type { IndexPatch, IndexState } from './log/index-state.js'
export type { Adopted } from './log/adopt-plain.js'
export type { Anchor, Anchors } from './log/anchors.js'
export { type CommonRedactions, redactCommon } from './codec/redact-common.js'
export type { Redact } from './codec/redactor.js'
export { fileAnchors } from './log/file-anchors.js'
export { fileVault } from './log/file-vault.js'
export type { KeyOptions, PlainAdoption } from './log/key-options.js'
export type { KeyStatus } from './log/key-ring.js'
export type { KeyVault } from './log/key-vault.js'
export type { ForkOptions, HistoryEntry, Log } from './log/log.js'
export { LogStore, type LogStoreOptions } from './log/log-store.js'
export { type Op, type Path, push, remove, type State, set, splice } from './log/ops.js'
export type * from './log/store-contract.js'
export type { StoreWrite } from './log/store-write.js'
export type { TenantKeys } from './log/tenant-keys.js'
export type { Transacted } from './log/transact.js'
export type { Decide, Updated } from './log/update.js'
export type { Verification } from './log/verify.js'
export type { AnchorReport } from './log/verify-anchors.js'
export { openDriver, openHoldfast, type OpenOptions } from './open.js'
export type { Collection } from './store/collection.js'
export type { CollectionOptions } from './store/collection-options.js'
export type { EmbedOptions } from './store/embedding.js'
export type { FieldInput } from './store/field.js'
export type { Clause, Filter, Operators } from './store/filter.js'
export type {
  BatchOperation,
  BatchResult,
  Item,
  ItemPage,
  ListQuery,
  PutOptions,
  SearchQuery,
  StoreWriter,
  Written,
} from './store/item.js'
export type { ScopeInput } from './store/space.js'
export type { StandardSchema } from './store/standard-schema.js'
export type { Scope, SpaceName, Store } from './store/store.js'
export { type AnswerOptions } from './runtime/answer.js'
export type { DeferOptions } from './runtime/defer.js'
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
  StepPolicy,
  TransactionOptions,
} from './runtime/context.js'
export {
  CancelledError,
  EffectUnknownError,
  PauseClosedError,
  type RecordedError,
  StepFailedError,
  StepTimeoutError,
} from './runtime/errors.js'
export type { RunEvent, UsageOfCall } from './runtime/events.js'
export { type FlowOptions, type FlowProgram, flow } from './runtime/flow.js'
export {
  Graph,
  type GraphOptions,
  type GraphProgram,
  graph,
  type NodeFunction,
  type NodeOptions,
} from './runtime/graph.js'
export { END, type Send, START, send } from './runtime/graph-declaration.js'
export type { InputFate, OpenPause, Outcome } from './runtime/outcome.js'
export type { Approval, FullMigration, Migration, Migrations, TypedProgram } from './runtime/program.js'
export type { Durable, Frequency } from './runtime/record-policy.js'
export type { Waiting } from './runtime/run-state.js'
export { RunStream } from './runtime/run-stream.js'
export type { Enqueued, RunOptions } from './runtime/run-thread.js'
export {
  append,
  last,
  merge,
  reduced,
  type Shape,
  type StateKey,
  type StateOf,
  type UpdateOf,
} from './runtime/state-key.js'
export { StepCollection, StepScope, StepStore } from './runtime/step-store.js'
export {
  CheckpointView,
  type Signalled,
  Thread,
  ThreadCheckpoint,
  ThreadView,
  type WaitOptions,
} from './runtime/thread.js'
export { Worker } from './runtime/worker.js'
export type { WorkerEvent, WorkerOptions } from './runtime/worker-options.js'
export type { Branch, Comparison } from './runtime/branches.js'
export type { BulkAnswer, BulkRun, BulkRunOptions, MigrationReport, PausePage, ThreadPause } from './runtime/bulk.js'
export {
  Checkpoint,
  type CheckpointFacts,
  type CheckpointInfo,
  type ForkOptions as CheckpointForkOptions,
  type HistoryOptions,
} from './runtime/checkpoint.js'
export type { Difference } from './runtime/diff.js'
export type { EventsOptions } from './runtime/follow-events.js'
export type { OnCorrupt } from './runtime/recover.js'
export type { OtherVersionRecords, ReplayDifference, ReplayReport } from './runtime/replay.js'
export type { Observer } from './telemetry/observer.js'
export type { TelemetryOptions } from './telemetry/options.js'
export type { MeterProviderLike, TracerProviderLike } from './telemetry/otel-api.js'
export {
  type Histogram,
  isProcessMetrics,
  mergeMetrics,
  type MergedMetrics,
  METRICS_COLLECTION,
  METRICS_SCOPE,
  type ModelTokens,
  type ProcessMetrics,
  quantileOf,
} from './telemetry/process-metrics.js'
