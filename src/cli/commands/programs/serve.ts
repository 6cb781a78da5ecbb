import { readFile } from 'node:fs/promises'
import type { ServerToken } from '../../../server/index.js'
import { usageError } from '../../cli-error.js'
import { type Command, list, type Options, text } from '../../command.js'
import type { CommandContext } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { cannotListen, readPort } from '../../input/listen-address.js'
import { loadServed } from '../../input/load-served.js'
import { clean } from '../../screen/output.js'
import { readWorkerOptions } from './worker.js'

/** Serves a module's programs over HTTP until SIGTERM or Ctrl-C. */
export const run: Command = async (context, [file], options) => {
  const { output, signal } = context
  const { createServer, isLoopback, listen, makeToken } = await import('../../../server/index.js')
  const host = text(options, 'host') ?? '127.0.0.1'
  const port = readPort(text(options, 'port') ?? '8787')
  const studio = options['studio'] === true
  const { tenant } = await context.settings()
  const given = await readTokens(context, options, tenant)
  if (given === undefined && !isLoopback(host)) {
    throw usageError(
      `--host ${host} can be reached from other machines, and there is no token.`,
      'Set HOLDFAST_TOKEN, or pass --tokens.',
    )
  }
  const makePrograms = file === undefined ? undefined : await loadServed(context, file)
  const token = makeToken()
  const tokens = given ?? [{ token, subject: 'local', ...(tenant === undefined ? {} : { tenant }) }]
  const hf = await context.open({ create: true, runs: true })
  const programs = (await makePrograms?.(hf)) ?? []
  const server = createServer(hf, {
    programs,
    tokens,
    hosts: list(options, 'allowHost'),
    origins: list(options, 'allowOrigin'),
    worker: options['worker'] === false ? false : readWorkerOptions(options),
    studio,
    onError: (error) => output.note(`${output.paint('red', 'error')}: ${clean(describe(error))}`),
  })
  const listening = await listen(server, { host, port }).catch(async (error: unknown) => {
    await server.close()
    throw cannotListen(error, host, port)
  })
  const { url } = listening
  const secret = given === undefined ? { token } : {}
  const page = studio ? { studio: `${url}/studio` } : {}
  if (output.json) output.jsonLine({ type: 'ready', url, pid: process.pid, ...page, ...secret })
  else {
    output.line(`Listening on ${url}`)
    if (given === undefined) output.line(`Token: ${token}`)
    // Behind the #: browsers send that to nobody.
    if (studio) output.line(`Studio: ${url}/studio${given === undefined ? `#token=${token}` : ''}`)
    const names = programs.map(({ plan }) => `${plan.name} ${plan.version}`).join(', ') || 'no program'
    output.note(`Serving ${names}. Ctrl-C stops.`)
  }
  await untilAborted(signal)
  await listening.close()
  output.note('Stopped: all streams are ended and all threads released.')
  return EXIT.ok
}

/** Waits for Ctrl-C or SIGTERM. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** The tokens that were set up; undefined where there are none. */
async function readTokens(
  context: CommandContext,
  options: Options,
  tenant: string | undefined,
): Promise<readonly ServerToken[] | undefined> {
  const file = text(options, 'tokens')
  const fromEnv = context.variable('HOLDFAST_TOKEN')
  if (file === undefined) {
    return fromEnv === undefined ? undefined : [{ token: fromEnv, ...(tenant === undefined ? {} : { tenant }) }]
  }
  const remedy = 'Write [{ "token": "…", "tenant": "…", "subject": "…", "roles": ["read"] }] to it.'
  let content: unknown
  try {
    content = JSON.parse(await readFile(context.path(file), 'utf8'))
  } catch (error) {
    throw usageError(`The tokens in ${file} can't be read: ${(error as Error).message}.`, remedy)
  }
  if (Array.isArray(content) && content.length > 0) return content as readonly ServerToken[]
  throw usageError(`${file} holds no tokens.`, remedy)
}

export function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
