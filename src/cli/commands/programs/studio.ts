import { spawn } from 'node:child_process'
import { type Command, text } from '../../command.js'
import { EXIT } from '../../exit-codes.js'
import { loadPrograms } from '../../input/load-programs.js'
import { clean } from '../../screen/output.js'
import { cannotListen, readPort } from '../../input/listen-address.js'
import { describe, untilAborted } from './serve.js'

/** Opens the studio on a store: this machine only, with a token of its own. */
export const run: Command = async (context, [file], options) => {
  const { output, signal, interactive } = context
  const { createServer, listen, makeToken } = await import('../../../server/index.js')
  const port = readPort(text(options, 'port') ?? '0')
  const { tenant } = await context.settings()
  const programs = file === undefined ? [] : await loadPrograms(context, file)
  // Who only looks leaves nothing in the store, not even metrics of this process.
  const hf = await context.open(file === undefined ? {} : { create: true, runs: true })
  const token = makeToken()
  const server = createServer(hf, {
    programs,
    studio: true,
    tokens: [{ token, subject: 'studio', ...(tenant === undefined ? { tenants: '*' as const } : { tenant }) }],
    onError: (error) => output.note(`${output.paint('red', 'error')}: ${clean(describe(error))}`),
  })
  const host = '127.0.0.1'
  const listening = await listen(server, { host, port }).catch(async (error: unknown) => {
    await server.close()
    throw cannotListen(error, host, port)
  })
  const { url } = listening
  // Behind the #: browsers send that to nobody, and the page takes it out of the address at once.
  const address = `${url}/studio#token=${token}`
  if (output.json) output.jsonLine({ type: 'ready', url, pid: process.pid, studio: `${url}/studio`, token })
  else {
    output.line(`Studio: ${address}`)
    const names = programs.map(({ plan }) => `${plan.name} ${plan.version}`).join(', ')
    output.note(names === '' ? 'Nothing runs here. Ctrl-C stops.' : `Running ${names}. Ctrl-C stops.`)
  }
  if (interactive && options['open'] !== false) openPage(address)
  await untilAborted(signal)
  await listening.close()
  return EXIT.ok
}

/** Shows an address in the browser of whoever sits there. Without one, they have the address. */
function openPage(address: string): void {
  const [command, ...args] =
    process.platform === 'darwin'
      ? ['open', address]
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler', address]
        : ['xdg-open', address]
  const child = spawn(command as string, args, { stdio: 'ignore', detached: true })
  child.on('error', () => {})
  child.unref()
}
