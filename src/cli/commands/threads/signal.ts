import { type Command, text } from '../../command.js'
import { findThread } from '../../input/find-thread.js'
import { readJson } from '../../input/json-input.js'
import { formatThreadId } from '../../input/thread-id.js'

/** Sends a value to a program that waits for it, or will. */
export const run: Command = async (context, [id = '', name = '', value], options) => {
  const sent = value === undefined ? undefined : await readJson(context, value, 'the value')
  const hf = await context.open()
  const { output } = context
  const { thread, branch } = await findThread(hf, id, text(options, 'branch'))
  const key = text(options, 'key')
  const { signal } = await hf.inspect(thread, { branch }).signal(name, sent, key === undefined ? {} : { key })
  if (output.json) output.document({ thread: formatThreadId(thread), branch, signal: name, isNew: signal === 'sent' })
  else output.line(signal === 'sent' ? `sent ${name}` : `${name} was sent before with this key`)
}
