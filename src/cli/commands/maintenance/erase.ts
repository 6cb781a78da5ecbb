import type { Holdfast } from '../../../index.js'
import { CliError, usageError } from '../../cli-error.js'
import { type Command, type Options, text } from '../../command.js'
import type { CommandContext } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { findThread } from '../../input/find-thread.js'
import { formatThreadId, parseScope, parseThreadId } from '../../input/thread-id.js'
import { clean } from '../../screen/output.js'
import { parseDuration } from '../../screen/times.js'

interface Target {
  /** What goes, for the question and the report. */
  readonly name: string
  erase(): Promise<Readonly<Record<string, number>>>
}

/** Removes a thread, the memory of a scope or a whole tenant for good, and drives it out of the backend's own files. */
export const run: Command = async (context, [thread], options) => {
  const { output } = context
  const grace = text(options, 'grace')
  const graceMs = grace === undefined ? {} : { graceMs: parseDuration(grace, '--grace') }
  if ([thread, text(options, 'scope'), options['everything']].filter((one) => one !== undefined).length !== 1) {
    throw usageError('Name exactly one thing to erase.', 'Pass a thread, --scope or --everything.')
  }
  if (options['everything'] === true && context.global.tenant === undefined) {
    throw usageError('--everything needs --tenant.', 'Name the tenant to erase completely.')
  }
  const hf = await context.open()
  const target = await findTarget(hf, thread, options)
  await confirmErase(context, target, options['yes'] === true)
  const erased = await target.erase()
  const { complete, note, blobs } = await hf.scrub(graceMs)
  if (output.json) {
    output.document({ target: target.name, ...erased, blobs: blobs.removed, complete, note })
    return
  }
  const all = { ...erased, blobs: (erased['blobs'] ?? 0) + blobs.removed }
  const parts = Object.entries(all).flatMap(([what, count]) => (count > 0 ? [describeCount(what, count)] : []))
  output.line(`Erased ${clean(target.name)}: ${parts.length > 0 ? parts.join(', ') : 'there was nothing'}.`)
  output.note(note)
  if (!complete) output.note('What was removed can be read by nobody through Holdfast; the files are another matter.')
}

async function findTarget(hf: Holdfast, thread: string | undefined, options: Options): Promise<Target> {
  const reason = text(options, 'reason')
  const how = {
    ...(reason === undefined ? {} : { reason }),
    ...(options['tombstone'] === false ? { tombstone: false } : {}),
  }
  const scope = text(options, 'scope')
  if (scope !== undefined) {
    const where = parseScope(scope)
    return { name: `the memory of ${scope}`, erase: async () => ({ ...(await hf.store.scope(where).erase()) }) }
  }
  if (thread === undefined) {
    return {
      name: 'everything of the tenant',
      async erase() {
        const { threads, items, blobs } = await hf.eraseTenant(how)
        return { threads, items, blobs: blobs.removed }
      },
    }
  }
  const id = parseThreadId(thread)
  // Whatever its branches are called; one that is not there is asked for again, to be told what is like it.
  if ((await hf.threads({ thread: id, limit: 1 })).threads.length === 0) await findThread(hf, thread)
  return {
    name: `thread ${formatThreadId(id)}`,
    erase: async () => ({ branches: (await hf.erase(id, how)).erased }),
  }
}

const NAMES: Readonly<Record<string, readonly [one: string, many: string]>> = {
  threads: ['thread', 'threads'],
  branches: ['branch', 'branches'],
  items: ['item', 'items'],
  blobs: ['large value', 'large values'],
}

function describeCount(what: string, count: number): string {
  return `${count} ${NAMES[what]?.[count === 1 ? 0 : 1] ?? what}`
}

async function confirmErase({ interactive }: CommandContext, { name }: Target, isSure: boolean): Promise<void> {
  if (isSure) return
  if (!interactive) throw usageError(`Erasing ${name} can't be undone.`, 'Pass --yes to do it without a question.')
  const { confirm } = await import('../../screen/ask.js')
  if (await confirm(`Erase ${name}? This can't be undone.`)) return
  throw new CliError('cancelled', 'Nothing was erased.', { exitCode: EXIT.interrupted })
}
