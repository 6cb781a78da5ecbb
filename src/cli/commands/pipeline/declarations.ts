import type { CommandDeclaration, CommandOption } from '../../command.js'
import { BY } from '../options.js'

const PIPELINE: CommandOption = ['--pipeline <name>', 'which of the pipelines that the file exports']

/** Pipelines of documents. */
export const pipelineCommands: readonly CommandDeclaration[] = [
  {
    usage: 'pipeline run <file>',
    summary: 'process the documents of a pipeline that are new, changed or unfinished',
    options: [
      PIPELINE,
      ['--retry-failed', 'also retry documents that failed earlier'],
      ['--remove-missing', 'remove the rows of documents that are gone from the source'],
      ['--lease <duration>', 'how long a document stays with a process without a heartbeat (default 10s)'],
    ],
    examples: ['holdfast pipeline run index-docs.mjs --store sqlite:docs.db'],
    load: () => import('./run.js'),
  },
  {
    usage: 'pipeline status <file>',
    summary: 'show what is recorded for a pipeline: documents, chunks, failures',
    options: [PIPELINE],
    load: () => import('./status.js'),
  },
  {
    usage: 'pipeline retry <file>',
    summary: 'process the failed documents of a pipeline again',
    options: [PIPELINE],
    load: () => import('./retry.js'),
  },
  {
    usage: 'pipeline pause <file>',
    summary: 'make every process stop after its current batches',
    options: [PIPELINE, BY],
    load: () => import('./pause.js'),
  },
  {
    usage: 'pipeline resume <file>',
    summary: 'let a paused or cancelled pipeline run again',
    options: [PIPELINE, BY],
    load: () => import('./resume.js'),
  },
  {
    usage: 'pipeline cancel <file>',
    summary: 'stop a pipeline for good; what was committed stays',
    options: [PIPELINE, BY],
    load: () => import('./cancel.js'),
  },
]
