import { Command as Commander, CommanderError } from 'commander'
import { type ErrorReport, reportError } from './cli-error.js'
import type { CommandDeclaration } from './command.js'
import { COMMANDS } from './commands.js'
import { CommandContext, type GlobalOptions } from './context.js'
import { EXIT } from './exit-codes.js'
import { cleanLines, forStream, Output, paintText, type Stream, toJson } from './screen/output.js'
import { sentence } from '../core/wording/sentence.js'
import { didYouMean, findSimilarNames } from '../core/wording/similar.js'
import type { Surroundings } from './surroundings.js'
import { readVersion } from './version.js'

/** Commands of two words: what the first one stands for, and under which heading. */
const GROUPS: Readonly<Record<string, readonly [description: string, heading: string]>> = {
  pipeline: ['process many documents, and resume at the exact batch', 'Running programs:'],
  schedule: ['run programs by themselves, at set times or intervals', 'Running programs:'],
  keys: ['manage the keys that encrypt a store', 'Maintenance:'],
  store: ['read and write the memory that threads share', 'Shared memory:'],
}

/** Runs one command line and returns its exit code. */
export async function runCli(around: Surroundings): Promise<number> {
  const running = new RunningCli(around)
  return running.run()
}

class RunningCli {
  readonly #around: Surroundings
  readonly #program: Commander
  readonly #groups = new Map<string, Commander>()
  #code: number = EXIT.ok

  constructor(around: Surroundings) {
    this.#around = around
    this.#program = makeProgram()
    for (const declaration of COMMANDS) this.#declare(declaration)
    const groups = [...this.#groups.values()]
    for (const command of [this.#program, ...this.#program.commands, ...groups.flatMap((group) => group.commands)]) {
      command.exitOverride().configureOutput({
        writeOut: (text) => around.stdout.write(text),
        writeErr: () => {},
        getOutHelpWidth: () => (around.stdout.isTTY ? (around.stdout.columns ?? 80) : 100),
        getOutHasColors: () => false,
      })
    }
  }

  async run(): Promise<number> {
    const { args } = this.#around
    try {
      if (args.length === 0) this.#program.outputHelp()
      else await this.#program.parseAsync(args, { from: 'user' })
    } catch (error) {
      this.#code = error instanceof CommanderError ? this.#endParsing(error) : this.#fail(error, this.#program.opts())
    }
    return this.#code
  }

  #declare({ usage, summary, group, options = [], examples = [], load }: CommandDeclaration): void {
    const [first = '', second = ''] = usage.split(' ')
    const grouped = /^[a-z]/.test(second)
    const parent = grouped ? this.#groupOf(first) : this.#program
    const command = parent.command(grouped ? usage.slice(first.length + 1) : usage).description(summary)
    if (group !== undefined) command.helpGroup(`${group}:`)
    for (const [flags, description] of options) {
      if (flags.endsWith('…')) command.option(flags.slice(0, -1), `${description} (may be repeated)`, collect)
      else command.option(flags, description)
    }
    if (examples.length > 0)
      command.addHelpText('after', `\nExamples:\n${examples.map((one) => `  ${one}`).join('\n')}`)
    command.action(async () => {
      const all = command.optsWithGlobals<GlobalOptions>()
      const context = this.#makeContext(all)
      try {
        const { run } = await load()
        this.#code = (await run(context, command.processedArgs as (string | undefined)[], command.opts())) ?? EXIT.ok
      } catch (error) {
        // Ctrl-C is an end that was asked for, and needs no reason.
        this.#code = context.interrupted && isAbort(error) ? EXIT.interrupted : this.#fail(error, all)
      } finally {
        await context.close().catch((error: unknown) => {
          this.#code = this.#fail(error, all)
        })
      }
    })
  }

  #groupOf(name: string): Commander {
    const known = this.#groups.get(name)
    if (known) return known
    const [description, heading] = GROUPS[name] ?? ['', 'Commands:']
    const made = this.#program.command(name).description(description).helpGroup(heading).helpCommand(false)
    this.#groups.set(name, made)
    return made
  }

  #makeContext(global: GlobalOptions): CommandContext {
    const { stdin, stdout, stderr, env } = this.#around
    const terminal = stdout.isTTY === true
    const json = global.json ?? false
    return new CommandContext({
      output: new Output({ stdout, stderr, json, terminal, color: !json && mayPaint(stdout, env) }),
      interactive: terminal && stdin.isTTY === true && !json,
      global,
      around: this.#around,
    })
  }

  /** Help and version end parsing too, as does what commander refuses. */
  #endParsing(error: CommanderError): number {
    if (error.exitCode === 0) return EXIT.ok
    const { args } = this.#around
    if (error.code === 'commander.help') {
      const group = [...this.#groups.keys()].find((name) => args.includes(name))
      if (group === undefined) return this.#refuseHelp(args)
      const commands = this.#groups.get(group)?.commands ?? []
      const names = commands.map((command) => command.name()).join(', ')
      return this.#print(usageReport(`"holdfast ${group}" needs a subcommand.`, `Add one of ${names}.`), {})
    }
    const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n')
    const meant = suggestion?.replace(/^\((.*)\)$/, '$1')
    return this.#print(
      usageReport(`${message.replace(/\.$/, '')}.`, meant ?? `See \`holdfast ${this.#helpOf(args)}--help\`.`),
      {},
    )
  }

  /** `holdfast help shwo`: commander shows all of the help then, and not what was mistyped. */
  #refuseHelp(args: readonly string[]): number {
    const wanted = args.filter((arg) => arg !== 'help' && !arg.startsWith('-')).join(' ')
    const similar = findSimilarNames(
      wanted,
      this.#program.commands.map((command) => command.name()),
    )
    return this.#print(usageReport(`unknown command '${wanted}'${didYouMean(similar)}`, 'See `holdfast --help`.'), {})
  }

  /** The words before `--help` for the command that was meant. */
  #helpOf(args: readonly string[]): string {
    const command = this.#program.commands.find((one) => args.includes(one.name()))
    if (command === undefined) return ''
    const inner = command.commands.find((one) => args.includes(one.name()))
    return inner ? `${command.name()} ${inner.name()} ` : `${command.name()} `
  }

  #fail(error: unknown, { json = false, debug = false }: GlobalOptions): number {
    return this.#print(reportError(error, debug), { json })
  }

  #print(report: ErrorReport, { json = this.#around.args.includes('--json') }: { readonly json?: boolean }): number {
    const { stderr, env } = this.#around
    const { exitCode, stack, ...rest } = report
    if (json) stderr.write(`${toJson({ error: { ...rest, ...(stack ? { stack } : {}) } }, false)}\n`)
    else {
      const name = mayPaint(stderr, env) ? paintText('red', 'holdfast:') : 'holdfast:'
      // Set in, so that no line of a message looks like one of ours.
      const said = [report.message, report.remedy].filter((text) => text !== '')
      const lines = said.map((text) => forStream(stderr, cleanLines(text).replaceAll('\n', '\n  ')))
      stderr.write(`${name} ${lines.join('\n  ')}\n`)
      if (stack) stderr.write(`${cleanLines(stack)}\n`)
    }
    return exitCode
  }
}

function makeProgram(): Commander {
  const program = new Commander('holdfast')
  const help = program
    .createCommand('help')
    .argument('[command]')
    .description('show the help of a command')
    .helpGroup('Maintenance:')
  return program
    .addHelpCommand(help)
    .description('Runs, inspects, answers, forks and repairs durable agent threads.')
    .option(
      '--store <url>',
      'sqlite:agents.db, file:folder, postgres://… or redis://… (default: HOLDFAST_STORE, config)',
    )
    .option('--tenant <id>', 'whose threads (default: HOLDFAST_TENANT, config, "default")')
    .option('--config <file>', 'a config file (default: HOLDFAST_CONFIG, the project’s holdfast.config.json or .mjs)')
    .option('--json', 'print one JSON document, or JSON lines')
    .option('--debug', 'print stack traces')
    .version(readVersion(), '-V, --version')
    .configureHelp({
      showGlobalOptions: true,
      // Without "[options]", which all have: what each does would begin too far to the right.
      subcommandTerm: (command) => `${command.name()} ${command.usage()}`.replace(' [options]', '').trimEnd(),
      minWidthToWrap: 20,
    })
    .addHelpText(
      'after',
      '\nExit codes: 0 ok, 1 failed, 2 usage, 3 not found,\n4 conflict or busy, 5 backend, 6 corrupt, 7 paused,\n8 incompatible, 9 limited, 130 interrupted.',
    )
    .showSuggestionAfterError(true)
}

function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value]
}

function usageReport(message: string, remedy: string): ErrorReport {
  return { code: 'usage', message: sentence(message), remedy, exitCode: EXIT.usage, data: {} }
}

function mayPaint(stream: Stream, env: Surroundings['env']): boolean {
  return stream.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb'
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError'
}
