import { DEFAULT_PIPELINE_TTL_MS } from '../../core/retention.js'
import { HoldfastError, InvalidValueError } from '../../core/errors.js'
import { flow, type FlowProgram } from '../../runtime/program/flow.js'
import type { Context } from '../../runtime/step/context.js'
import type { LoadedDocument } from '../document.js'
import type { PipelinePlan } from '../pipeline.js'
import { BatchUnit } from './batch-unit.js'
import type { DocumentInput, DocumentResult, DocumentWork } from './document-work.js'

/** The program of a document's thread: one record per batch, made together with its rows if the sink allows it. */
export function documentFlow(plan: PipelinePlan): FlowProgram<DocumentInput, DocumentResult> {
  const { name, version, compatibleWith, retry, retention, batch } = plan
  const options = {
    name,
    version,
    ...(compatibleWith && { compatibleWith }),
    ...(retry && { retry }),
    ...(retention && { retention }),
    // The document, and those who wait for it: whoever continues reads it from the source again.
    transientContext: true as const,
  }
  const program = flow(options, async (ctx: Context<DocumentInput>, input: DocumentInput): Promise<DocumentResult> => {
    if (input.remove) {
      await remove(ctx, plan, input.document)
      return { chunks: 0, tokens: 0, resumed: false }
    }
    const work = ctx.context as DocumentWork
    work.begun()
    checkContent(work, input)
    const chunks = await splitDocument(plan, work.document)
    const batches = Math.max(1, Math.ceil(chunks.length / batch))
    let tokens = 0
    for (let i = 0; i < batches; i++) {
      const items = chunks.slice(i * batch, (i + 1) * batch)
      const unit = new BatchUnit(ctx, plan, work, { items, number: i, isLast: i === batches - 1 })
      tokens += await unit.commit()
      work.committed(items.length)
    }
    return { chunks: chunks.length, tokens, resumed: ctx.attempt > 1 }
  })
  return { ...program, plan: { ...program.plan, defaultTtlMs: DEFAULT_PIPELINE_TTL_MS } }
}

/** The content is no longer what this run began with: the run is given up, and the document is started over. */
export const STALE = 'StaleDocumentError'

function checkContent({ document }: DocumentWork, input: DocumentInput): void {
  if (document.id === input.document && document.hash === input.hash) return
  const error = new HoldfastError('incompatible', `Document "${input.document}" changed while it was processed.`, {
    data: { document: input.document },
    remedy: 'Run the pipeline again: it starts over with what the document says now.',
  })
  error.name = STALE
  throw error
}

async function remove(ctx: Context<DocumentInput>, { sink }: PipelinePlan, document: string): Promise<void> {
  if (sink.transactional) {
    await ctx.transaction('remove', (sql) => sink.remove({ document }, sql))
  } else {
    await ctx.step('remove', () => sink.remove({ document }))
  }
}

async function splitDocument({ split }: PipelinePlan, document: LoadedDocument): Promise<readonly unknown[]> {
  const made: unknown = await split.split(document)
  const isIterable =
    typeof made === 'object' && made !== null && (Symbol.iterator in made || Symbol.asyncIterator in made)
  if (!isIterable) {
    throw new InvalidValueError(
      `stage "${split.name}"`,
      `must be a list of chunks, not ${made === null ? 'null' : typeof made}`,
      'Return an array or another iterable.',
    )
  }
  const chunks: unknown[] = []
  for await (const chunk of made as Iterable<unknown> | AsyncIterable<unknown>) chunks.push(chunk)
  return chunks
}
