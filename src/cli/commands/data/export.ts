import { writeFile } from 'node:fs/promises'
import { CliError } from '../../cli-error.js'
import { type Command, text } from '../../command.js'
import { findThread } from '../../input/find-thread.js'
import { formatThreadId } from '../../input/thread-id.js'
import { formatBytes } from '../../screen/times.js'

/** Writes a thread to one portable file, or to standard output. */
export const run: Command = async (context, [id = '', file], options) => {
  const hf = await context.open()
  const { output } = context
  const branch = text(options, 'branch')
  const { thread } = await findThread(hf, id, branch)
  const { redactCommon } = await import('../../../index.js')
  const content = await hf.export(thread, {
    ...(branch === undefined ? {} : { branch }),
    ...(options['redact'] === true ? { redact: redactCommon() } : {}),
  })
  if (file === undefined) {
    output.raw(content)
    return
  }
  try {
    // Never over another file: a fixture of last month may be the only one there is.
    await writeFile(context.path(file), content, { flag: options['force'] === true ? 'w' : 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw new CliError('conflict', `${file} exists already.`, { remedy: 'Pass another name, or --force.' })
  }
  const entries = content.split('\n').length - 3
  const bytes = Buffer.byteLength(content)
  const redacted = options['redact'] === true
  if (output.json) output.document({ thread: formatThreadId(thread), file, entries, bytes, redacted })
  else output.line(`${file}: ${entries} entries, ${formatBytes(bytes)}${redacted ? ', redacted' : ''}`)
}
