#!/usr/bin/env node
import { Command as Commander, CommanderError } from 'commander'
import { type ErrorReport, reportError } from './cli-error.js'
import type { CommandDeclaration } from './command.js'
import { COMMANDS } from './commands.js'
import { CommandContext, type GlobalOptions } from './context.js'
import { EXIT } from './exit-codes.js'
import { Output, toJson } from './output.js'
import { readVersion } from './version.js'

// A reader that has seen enough (`| head`) closes the pipe; that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failed)
})

const interrupt = new AbortController()
let code: number = EXIT.ok
let listening = false

const program = new Commander('holdfast')
  .description('Looks after durable agent threads: runs, inspects, forks, answers and repairs them.')
  .option('--store <url>', 'sqlite:agents.db, file:folder, postgres://… or redis://… (default: HOLDFAST_STORE, config)')
  .option('--tenant <id>', 'whose threads (default: HOLDFAST_TENANT, config, "default")')
  .option('--config <file>', 'a config file (default: the nearest holdfast.config.json or .mjs)')
  .option('--json', 'print one JSON document, or JSON lines')
  .option('--debug', 'print stack traces')
  .version(readVersion(), '-V, --version')
  .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
  .addHelpText(
    'after',
    '\nExit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict or busy, 5 backend, 6 corrupt, 7 paused, 8 incompatible.',
  )
  .showSuggestionAfterError(true)

const groups = new Map<string, Commander>()
for (const declaration of COMMANDS) declare(declaration)
for (const command of [program, ...program.commands, ...[...groups.values()].flatMap((group) => group.commands)]) {
  command.exitOverride().configureOutput({ writeErr: () => {} })
}

void main()

async function main(): Promise<void> {
  try {
    if (process.argv.length <= 2) program.outputHelp()
    else await program.parseAsync()
  } catch (error) {
    code = error instanceof CommanderError ? endParsing(error) : fail(error, program.opts<GlobalOptions>())
  }
  // Not left to the event loop: a user's module may hold it open for ever.
  process.stdout.write('', () => process.exit(code))
}

function declare({ usage, summary, options = [], examples = [], load }: CommandDeclaration): void {
  const [first = '', second = ''] = usage.split(' ')
  const grouped = /^[a-z]/.test(second)
  const parent = grouped ? groupOf(first) : program
  const command = parent.command(grouped ? usage.slice(first.length + 1) : usage).description(summary)
  for (const [flags, description] of options) {
    if (flags.endsWith('…')) command.option(flags.slice(0, -1), `${description} (may be repeated)`, collect, [])
    else command.option(flags, description)
  }
  if (examples.length > 0) command.addHelpText('after', `\nExamples:\n${examples.map((one) => `  ${one}`).join('\n')}`)
  command.action(async () => {
    const all = command.optsWithGlobals<GlobalOptions>()
    const context = makeContext(all)
    try {
      const { run } = await load()
      code = (await run(context, command.processedArgs as (string | undefined)[], command.opts())) ?? EXIT.ok
    } catch (error) {
      code = interrupt.signal.aborted && isAbort(error) ? EXIT.interrupted : fail(error, all)
    } finally {
      await context.close().catch((error: unknown) => {
        code = fail(error, all)
      })
    }
  })
}

function groupOf(name: string): Commander {
  const known = groups.get(name)
  if (known) return known
  const made = program.command(name).description('Reads and writes the memory that threads share')
  groups.set(name, made)
  return made
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value]
}

function makeContext(global: GlobalOptions): CommandContext {
  const { stdin, stdout, stderr, env } = process
  // For tests, which have no terminal: makes commands behave as on one.
  const forced = env['HOLDFAST_FORCE_TTY'] === '1'
  const terminal = forced || stdout.isTTY === true
  const json = global.json ?? false
  const color = terminal && !json && !env['NO_COLOR'] && env['TERM'] !== 'dumb'
  return new CommandContext({
    output: new Output({ stdout, stderr, json, terminal, color }),
    stdin,
    interactive: terminal && (forced || stdin.isTTY === true) && !json,
    onInterrupt,
    global,
  })
}

/** Help and version end parsing too, as does what commander refuses. */
function endParsing(error: CommanderError): number {
  if (error.exitCode === 0) return EXIT.ok
  if (error.code === 'commander.help') return EXIT.usage
  const message = error.message.replace(/^error: /, '')
  const report = { code: 'usage', message, remedy: 'See `holdfast --help`.', exitCode: EXIT.usage, data: {} }
  return print(report, program.opts<GlobalOptions>().json ?? process.argv.includes('--json'))
}

function fail(error: unknown, { json = false, debug = false }: GlobalOptions): number {
  return print(reportError(error, debug), json)
}

function print(report: ErrorReport, json: boolean): number {
  const { exitCode, stack, ...rest } = report
  if (json) process.stderr.write(`${toJson({ error: { ...rest, ...(stack ? { stack } : {}) } }, false)}\n`)
  else {
    process.stderr.write(`holdfast: ${report.message}\n`)
    if (report.remedy) process.stderr.write(`  ${report.remedy}\n`)
    if (stack) process.stderr.write(`${stack}\n`)
  }
  return exitCode
}

/** From now on Ctrl-C asks the command to end; the second one ends it. */
function onInterrupt(): AbortSignal {
  if (!listening) {
    listening = true
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupt.abort())
  }
  return interrupt.signal
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error === interrupt.signal.reason)
}
