import type { RunEvent } from '../../index.js'
import type { UiChunk } from './ui-chunk.js'
import { UiWriter, type UiWriterOptions } from './ui-writer.js'

/**
 * An agent's run as the AI SDK's UI message stream, for a route of your own:
 * `createUIMessageStreamResponse({ stream: toUIMessageStream(thread.stream({ input })) })`. Reading drives it; if the
 * reader leaves, the run continues.
 */
export function toUIMessageStream(
  events: AsyncIterable<RunEvent>,
  options: UiWriterOptions = {},
): ReadableStream<UiChunk> {
  const writer = new UiWriter(options)
  const chunks = (async function* () {
    for await (const event of events) yield* writer.write(event)
  })()
  return new ReadableStream<UiChunk>({
    async pull(controller) {
      try {
        const { done, value } = await chunks.next()
        if (done) controller.close()
        else controller.enqueue(value)
      } catch (error) {
        // A run that could not even begin, or lost its thread: its reader is told about it as about any other failure.
        controller.enqueue({ type: 'error', errorText: error instanceof Error ? error.message : String(error) })
        controller.close()
      }
    },
    cancel: async () => void (await chunks.return(undefined)),
  })
}
