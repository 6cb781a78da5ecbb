import { CliError } from '../cli-error.js'
import { EXIT } from '../exit-codes.js'
import { clean } from './output.js'

/** Lets the person at the terminal choose one. */
export async function choose<Value>(
  message: string,
  choices: readonly { readonly value: Value; readonly label: string; readonly hint?: string }[],
): Promise<Value> {
  const { select } = await import('@clack/prompts')
  // Prompts write to the terminal themselves: nothing else looks through what they show.
  const options = choices.map(({ label, hint }, value) => ({
    value,
    label: clean(label),
    ...(hint === undefined ? {} : { hint: clean(hint) }),
  }))
  const chosen = await settle(select({ message: clean(message), options }))
  return (choices[chosen] as (typeof choices)[number]).value
}

export async function confirm(message: string): Promise<boolean> {
  const clack = await import('@clack/prompts')
  return settle(clack.confirm({ message: clean(message) }))
}

/** Asks for a line until `check` finds nothing wrong with it. */
export async function askText(
  message: string,
  check: (text: string) => string | undefined = () => undefined,
): Promise<string> {
  const clack = await import('@clack/prompts')
  return settle(clack.text({ message: clean(message), validate: (given) => check(given ?? '') }))
}

async function settle<Value>(answer: Promise<Value | symbol>): Promise<Value> {
  const { isCancel } = await import('@clack/prompts')
  const given = await answer
  if (isCancel(given)) throw new CliError('cancelled', 'Nothing was done.', { exitCode: EXIT.interrupted })
  return given as Value
}
