import { CliError } from '../../cli-error.js'
import { type Command, text } from '../../command.js'
import { findThread } from '../../input/find-thread.js'
import { clean } from '../../screen/output.js'
import { didYouMean, findSimilarNames } from '../../../core/wording/similar.js'
import { formatThreadId } from '../../input/thread-id.js'

/** Removes a tag from its checkpoint, which stays. */
export const run: Command = async (context, [id = '', name = ''], options) => {
  const hf = await context.open()
  const { output } = context
  const { thread, branch, tags } = await findThread(hf, id, text(options, 'branch'))
  const { entries } = await (await hf.log(thread, { branch })).untag(name)
  if (entries.length === 0) {
    const similar = didYouMean(findSimilarNames(name, tags))
    throw new CliError('not-found', `Thread ${formatThreadId(thread)} (${branch}) has no tag "${name}"${similar}`, {
      remedy: tags.length > 0 ? `Its tags: ${tags.join(', ')}.` : 'It has no tags.',
    })
  }
  if (output.json) output.document({ thread: formatThreadId(thread), branch, untagged: name })
  else output.line(`removed ${clean(name)}`)
}
