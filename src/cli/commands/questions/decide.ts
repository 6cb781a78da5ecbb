import type { OpenPause } from '../../../index.js'
import { type CliError, usageError } from '../../cli-error.js'
import { type Options, text } from '../../command.js'
import type { CommandContext } from '../../context.js'
import { findPause } from '../../input/find-pause.js'
import { findThread } from '../../input/find-thread.js'
import { shellQuote } from '../../screen/output.js'
import { formatThreadId } from '../../input/thread-id.js'
import { lookAtQuestion } from '../../screen/view-question.js'

/** A yes or no to an open question, in the form that its kind wants. */
export async function decide(
  context: CommandContext,
  [id = '', pause]: readonly (string | undefined)[],
  options: Options,
  yes: boolean,
): Promise<void> {
  const hf = await context.open()
  const { output } = context
  const summary = await findThread(hf, id, text(options, 'branch'))
  const question = await findPause(context, hf, summary, pause)
  const answer = answerOf(question, yes, text(options, 'reason'))
  await lookAtQuestion(context, question, {
    thread: shellQuote(id),
    // A no does nothing: a script may say it to whatever is asked.
    named: pause !== undefined || !yes,
    yes: options['yes'] === true || (!yes && !context.interactive),
    ask: yes ? 'Approve this?' : 'Reject this?',
  })
  const by = text(options, 'by')
  await hf
    .inspect(summary.thread, { branch: summary.branch })
    .answer(question.id, answer, by === undefined ? {} : { by })
  const done = { thread: formatThreadId(summary.thread), branch: summary.branch, pause: question.id, answer }
  if (output.json) output.document(done)
  else output.line(`${yes ? 'approved' : 'rejected'} ${question.id}`)
}

function answerOf(question: OpenPause, yes: boolean, reason: string | undefined): unknown {
  const schema = question.schema as Schema | undefined
  if (question.kind === 'unknown-effect') {
    throw usageError(
      `Question ${question.id} asks for the outcome of an effect, which is not a yes or no.`,
      `Find out, then: holdfast answer <thread> ${question.id} '{"outcome":"succeeded","result":…}' (or "not-executed", "failed")`,
    )
  }
  if (schema?.type === 'boolean') {
    if (reason !== undefined) throw noReason(question)
    return yes
  }
  const field = question.kind === 'permission' || schema?.properties?.['allowed'] ? 'allowed' : 'approved'
  if (schema?.properties && !schema.properties[field] && schema.additionalProperties === false) {
    throw usageError(`Question ${question.id} needs an answer other than yes or no.`, 'Use `holdfast answer`.')
  }
  if (reason === undefined) return { [field]: yes }
  if (schema?.additionalProperties === false && !schema.properties?.['reason']) throw noReason(question)
  return { [field]: yes, reason }
}

interface Schema {
  readonly type?: unknown
  readonly properties?: Readonly<Record<string, unknown>>
  readonly additionalProperties?: unknown
}

function noReason(question: OpenPause): CliError {
  return usageError(`Question ${question.id} takes no reason.`, 'Omit --reason.')
}
