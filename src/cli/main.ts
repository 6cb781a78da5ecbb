#!/usr/bin/env node
import { EXIT } from './exit-codes.js'
import { runCli } from './run-cli.js'

// A reader that has seen enough (`| head`) closes the pipe; that is not a failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failed)
  })
}

const { argv, env, stdin, stdout, stderr } = process
const interrupt = new AbortController()
let listening = false

const code = await runCli({
  args: argv.slice(2),
  env,
  cwd: process.cwd(),
  uid: process.getuid?.(),
  stdin,
  stdout,
  stderr,
  // The first Ctrl-C asks the command to end; the second one ends it.
  onInterrupt: () => {
    if (!listening) {
      listening = true
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupt.abort())
    }
    return interrupt.signal
  },
})
// Not left to the event loop: a user's module may keep it alive forever.
stdout.write('', () => stderr.write('', () => process.exit(code)))
