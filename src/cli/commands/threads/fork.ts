import type { ForkOptions } from '../../../index.js'
import { usageError } from '../../cli-error.js'
import { type Command, list, text } from '../../command.js'
import { findCheckpoint } from '../../input/find-checkpoint.js'
import { findThread } from '../../input/find-thread.js'
import { readPairs } from '../../input/json-input.js'
import { shellQuote } from '../../screen/output.js'
import { formatThreadId } from '../../input/thread-id.js'

/** Makes a branch of a checkpoint, with values of the state replaced. */
export const run: Command = async (context, [id = ''], options) => {
  const hf = await context.open()
  const { output } = context
  const summary = await findThread(hf, id, text(options, 'branch'))
  const checkpoint = await findCheckpoint(hf, summary, text(options, 'at') ?? 'head')
  const set = readPairs(list(options, 'set'), '--set')
  const name = text(options, 'name')
  const fork = await hf
    .inspect(summary.thread)
    .look(checkpoint)
    .fork({
      ...(name === undefined ? {} : { name }),
      ...(Object.keys(set).length > 0 ? { set } : {}),
      ...choice<'effects'>(text(options, 'effects'), 'effects', ['ask', 'allow', 'deny']),
      ...choice<'reads'>(text(options, 'reads'), 'reads', ['live', 'recorded']),
    })
  const [head] = await fork.history({ limit: 1 })
  const made = { thread: formatThreadId(summary.thread), branch: fork.branch, from: checkpoint, checkpoint: head?.id }
  if (output.json) output.document(made)
  else {
    output.line(fork.branch)
    const words = `${shellQuote(made.thread)} --branch ${shellQuote(fork.branch)}${context.where}`
    output.note(`Continue with: holdfast resume <file> ${words}`)
  }
}

function choice<Name extends 'effects' | 'reads'>(
  value: string | undefined,
  name: Name,
  choices: readonly NonNullable<ForkOptions[Name]>[],
): Pick<ForkOptions, Name> {
  if (value === undefined) return {} as Pick<ForkOptions, Name>
  const found = choices.find((one) => one === value)
  if (found === undefined) throw usageError(`--${name} is "${value}".`, `Use ${choices.join(', ')}.`)
  return { [name]: found } as unknown as Pick<ForkOptions, Name>
}
