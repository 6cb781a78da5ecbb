export type { Document, LoadedDocument } from './document.js'
export type { DocumentRecord } from './catalog.js'
export {
  type OpenPipeline,
  openPipeline,
  type PipelineHost,
  type PipelineRunOptions,
  type PipelineStatus,
} from './open-pipeline.js'
export { type Pipeline, pipeline, type PipelineOptions, type Source } from './pipeline.js'
export type { Rate } from './rate.js'
export type { FailedDocument, PipelineProgress, PipelineReport } from './report.js'
export type { Removal, Row, Sink, TransactionalSink, UpsertSink } from './sink.js'
export {
  folder,
  type FolderOptions,
  jsonLines,
  type JsonLinesOptions,
  type RowReader,
  sqlRows,
  type SqlRowsOptions,
} from './sources.js'
export { splitText, type SplitTextOptions, type TextChunk } from './split-text.js'
export type { BatchStage, SplitStage, StageContext, StageResult } from './stage.js'
