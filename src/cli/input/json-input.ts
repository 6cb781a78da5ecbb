import { readFile } from 'node:fs/promises'
import { CliError, usageError } from '../cli-error.js'
import type { CommandContext } from '../context.js'

/** A value from the command line: JSON as it is, `@file` from a file, `-` from standard input. */
export async function readJson(context: CommandContext, text: string, option: string): Promise<unknown> {
  const source = await readSource(context, text, option)
  try {
    return JSON.parse(source)
  } catch (error) {
    const from = text === '-' ? ' from standard input' : text.startsWith('@') ? ` from ${text.slice(1)}` : ''
    throw usageError(
      `${option}${from} is not JSON: ${(error as Error).message}`,
      `Quote it for the shell, as in ${option} '{"orderId":"ORD-1"}' or ${option} '"text"'.`,
    )
  }
}

async function readSource(context: CommandContext, text: string, option: string): Promise<string> {
  if (text === '-') return readAll(context.stdin)
  if (!text.startsWith('@')) return text
  try {
    return await readFile(context.path(text.slice(1)), 'utf8')
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'does not exist' : (error as Error).message
    throw new CliError('not-found', `The file ${text.slice(1)} for ${option} ${reason}.`, { remedy: 'Check its path.' })
  }
}

async function readAll(stream: NodeJS.ReadableStream): Promise<string> {
  let text = ''
  stream.setEncoding('utf8')
  for await (const chunk of stream) text += chunk as string
  return text
}

/** `key=value` pairs, each value JSON where it is JSON and text otherwise: `region=eu vip=true`. */
export function readPairs(pairs: readonly string[], option: string): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=')
      if (at < 1) throw usageError(`${option} ${JSON.stringify(pair)} is not a pair.`, `Write ${option} name=value.`)
      return [pair.slice(0, at), readLoose(pair.slice(at + 1))]
    }),
  )
}

function readLoose(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
