import { askText } from '../../screen/ask.js'
import { usageError } from '../../cli-error.js'
import { type Command, text } from '../../command.js'
import { findPause } from '../../input/find-pause.js'
import { findThread } from '../../input/find-thread.js'
import { readJson } from '../../input/json-input.js'
import { shellQuote, toJson } from '../../screen/output.js'
import { formatThreadId } from '../../input/thread-id.js'
import { lookAtQuestion } from '../../screen/view-question.js'

/** Answers an open question. On a terminal it asks for what was left out. */
export const run: Command = async (context, [id = '', second, third], options) => {
  // The id of the only question can be left out, and then the answer comes second.
  const short = third === undefined && second !== undefined && !second.startsWith('p-')
  const [pause, value] = short ? [undefined, second] : [second, third]
  const hf = await context.open()
  const { output } = context
  const summary = await findThread(hf, id, text(options, 'branch'))
  const question = await findPause(context, hf, summary, pause)
  const plain = text(options, 'text')
  let answer: unknown
  const isGiven = plain !== undefined || value !== undefined
  if (isGiven || context.interactive) {
    await lookAtQuestion(context, question, {
      thread: shellQuote(id),
      named: pause !== undefined,
      yes: options['yes'] === true,
      ...(isGiven ? { ask: 'Send this answer?' } : {}),
    })
  }
  if (plain !== undefined) answer = plain
  else if (value !== undefined) answer = await readJson(context, value, 'the answer')
  else if (context.interactive) {
    if (question.schema !== undefined)
      output.note(output.paint('dim', `An answer fits ${toJson(question.schema, false)}`))
    answer = readLoosely(await askText('The answer, as JSON or as text'))
  } else {
    const schema = question.schema === undefined ? '' : ` It must fit ${toJson(question.schema, false)}.`
    throw usageError(
      `No answer is given.${schema}`,
      `Write: holdfast answer ${shellQuote(id)} ${question.id} '<json>'${context.where}`,
    )
  }
  const by = text(options, 'by')
  await hf
    .inspect(summary.thread, { branch: summary.branch })
    .answer(question.id, answer, by === undefined ? {} : { by })
  const done = { thread: formatThreadId(summary.thread), branch: summary.branch, pause: question.id, answer }
  if (output.json) output.document(done)
  else output.line(`answered ${question.id}`)
}

function readLoosely(given: string): unknown {
  try {
    return JSON.parse(given)
  } catch {
    return given
  }
}
