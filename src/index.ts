export { agent, type AgentProgram } from './agent/agent.js'
export type {
  AgentOptions,
  Budget,
  CompactionOptions,
  StepSettings,
  TurnContext,
} from './agent/agent-options.js'
export type { AgentState, Ending, Resumes, Summary } from './agent/agent-state.js'
export type { AiPrompt, AnyAiMessage, SpecVersion } from './agent/messages/ai-sdk-types.js'
export { checkMessage, checkMessages, toMessage } from './agent/messages/check-message.js'
export type { AgentInput } from './agent/messages/read-input.js'
export { costOf, type Price, type PriceTable } from './agent/model/cost.js'
export { estimateTokens, loadTokenCounter, type TokenCounter } from './agent/messages/estimate.js'
export { fromAiSdkMessages, type FromOptions } from './agent/messages/from-ai-sdk.js'
export { fromOpenAiMessages } from './agent/messages/from-openai.js'
export { type McpClient, type McpOptions, mcpTools, type RefusedTool } from './agent/tools/mcp-tools.js'
export {
  type FinishReason,
  makeMessage,
  type Message,
  type MessageOptions,
  type ModelRef,
  type Role,
  textOf,
} from './agent/messages/message.js'
export type * from './agent/messages/message-part.js'
export type { ModelFailure } from './agent/model/model-failure.js'
export type { LanguageModel, ModelEvent, ModelSettings, ToolChoice } from './agent/model/model-types.js'
export type { OpenAiContentPart, OpenAiMessage, OpenAiToolCall } from './agent/messages/openai-types.js'
export { type Tally, tenantUsage, type ThreadUsage } from './agent/model/tally.js'
export { toAiSdkPrompt } from './agent/messages/to-ai-sdk.js'
export { toOpenAiMessages } from './agent/messages/to-openai.js'
export {
  type Tool,
  tool,
  type ToolContext,
  type ToolOptions,
} from './agent/tools/tool.js'
export { addUsage, type Usage } from './agent/model/usage.js'
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
export type { S3Credentials } from './archive/open-place.js'
export type { PlaceOptions } from './archive/attach.js'
export { type ArchivePlace, folderPlace, type PlacedObject } from './archive/place.js'
export { type S3Options, s3Place } from './archive/s3-place.js'
export type { ArchiveCheck, ArchivedPart, ThreadArchive } from './archive/thread-archive.js'
export { copyStore, type CopyStoreOptions } from './copy-store.js'
export type {
  CopyOptions,
  CopyProgress,
  CopyRefusal,
  CopyRefusalReason,
  CopyReport,
} from './copy/copy-report.js'
export type { ExportOptions } from './fixture/export-thread.js'
export type { ImportedThread } from './fixture/import-thread.js'
export { describeStoreUrl } from './core/secrets.js'
export {
  describeRetention,
  type Retention,
  type RetentionRules,
  type StoreRetention,
  type StoreRetentionRules,
  type SweepReport,
} from './core/retention.js'
export { systemClock } from './core/system-clock.js'
export {
  Holdfast,
  type SweepThreadsOptions,
  type Swept,
  type ThreadOptions,
  type ThreadPage,
  type ThreadQuery,
  type ThreadSummary,
} from './holdfast.js'
export type { Claim, ClaimOptions } from './log/write/claim.js'
export type * from './log/contract.js'
export type * from './log/copy-contract.js'
export type { Draft } from './log/entry/draft.js'
export type { OpenedEntry } from './log/entry/entry-opening.js'
export type { EntryBody, Fold } from './log/entry/fold.js'
export type { IndexPatch, IndexState } from './log/entry/index-state.js'
export type { Adopted } from './log/keys/adopt-plain.js'
export type { Anchor, Anchors } from './log/read/anchors.js'
export { type CommonRedactions, redactCommon } from './codec/redact-common.js'
export type { Redact } from './codec/redactor.js'
export { fileAnchors } from './log/read/file-anchors.js'
export { fileVault } from './log/keys/file-vault.js'
export type { KeyOptions, PlainAdoption } from './log/keys/key-options.js'
export type { KeyStatus } from './log/keys/key-ring.js'
export type { KeyVault } from './log/keys/key-vault.js'
export type { ForkOptions, HistoryEntry, Log } from './log/log.js'
export { LogStore, type LogStoreOptions } from './log/log-store.js'
export { type Op, type Path, push, remove, type State, set, splice } from './log/entry/ops.js'
export type * from './log/store-contract.js'
export type { StoreWrite } from './log/items/store-write.js'
export type { TenantKeys } from './log/keys/tenant-keys.js'
export type { Transacted } from './log/write/transact.js'
export type { Decide, Updated } from './log/write/update.js'
export type { Verification } from './log/read/verify.js'
export type { AnchorReport } from './log/read/verify-anchors.js'
export { openDriver, openHoldfast, type OpenOptions } from './open.js'
export type { ErasedTenant, EraseOptions, ScrubReport } from './retention/erase.js'
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
export { type AnswerOptions } from './runtime/pause/answer.js'
export type { DeferOptions } from './runtime/pause/defer.js'
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
} from './runtime/step/context.js'
export {
  CancelledError,
  EffectUnknownError,
  PauseClosedError,
  type RecordedError,
  StepFailedError,
  StepTimeoutError,
} from './runtime/errors.js'
export type { RunEvent, UsageOfCall } from './runtime/events/events.js'
export { type FlowOptions, type FlowProgram, flow } from './runtime/program/flow.js'
export {
  Graph,
  type GraphOptions,
  type GraphProgram,
  graph,
  type NodeFunction,
  type NodeOptions,
} from './runtime/program/graph.js'
export { END, type Send, START, send } from './runtime/program/graph-declaration.js'
export type { InputFate, OpenPause, Outcome } from './runtime/run/outcome.js'
export type { Approval, FullMigration, Migration, Migrations, TypedProgram } from './runtime/program/program.js'
export type { Durable, Frequency } from './runtime/run/record-policy.js'
export type { Waiting } from './runtime/run/run-state.js'
export { RunStream } from './runtime/events/run-stream.js'
export type { Enqueued, EnqueueOptions, RunOptions } from './runtime/run/run-thread.js'
export {
  append,
  last,
  merge,
  reduced,
  type Shape,
  type StateKey,
  type StateOf,
  type UpdateOf,
} from './runtime/program/state-key.js'
export { StepCollection, StepScope, StepStore } from './runtime/step/step-store.js'
export {
  CheckpointView,
  type Signalled,
  Thread,
  ThreadCheckpoint,
  ThreadView,
  type WaitOptions,
} from './runtime/thread.js'
export { Worker } from './runtime/worker/worker.js'
export type { WorkerEvent, WorkerOptions } from './runtime/worker/worker-options.js'
export type { Branch, Comparison } from './runtime/history/branches.js'
export type {
  BulkAnswer,
  BulkRun,
  BulkRunOptions,
  MigrationReport,
  PausePage,
  ThreadPause,
} from './runtime/pause/bulk.js'
export {
  Checkpoint,
  type CheckpointFacts,
  type CheckpointInfo,
  type ForkOptions as CheckpointForkOptions,
  type HistoryOptions,
} from './runtime/history/checkpoint.js'
export type { Difference } from './runtime/history/diff.js'
export type { EventsOptions } from './runtime/events/follow-events.js'
export type { OnCorrupt } from './runtime/run/recover.js'
export type { OtherVersionRecords, ReplayDifference, ReplayReport } from './runtime/history/replay.js'
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
