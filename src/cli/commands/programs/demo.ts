import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type DemoReport, isGoodDay } from '../../../demo/report.js'
import { describeStoreUrl } from '../../../internal.js'
import { CliError, usageError } from '../../cli-error.js'
import { type Command, type Options, text } from '../../command.js'
import { printReport } from '../../screen/demo-report.js'
import { DemoScreen } from '../../screen/demo-screen.js'
import { EXIT } from '../../exit-codes.js'
import { shellQuote, toJson } from '../../screen/output.js'
import { parseCount, parseDuration } from '../../screen/times.js'

/** By this file a folder is known as one that a demo made, and may be replaced. */
const MARK = 'demo.json'

/** Plays Black Friday on a store of its own, or on the one that is named. */
export const run: Command = async (context, _args, options) => {
  const { output, signal, global } = context
  const settings = readOptions(options)
  if (global.store?.startsWith('memory:')) {
    throw usageError(
      'The demo runs several processes, and memory: is visible to only one of them.',
      'Omit --store, or name another.',
    )
  }
  const folder = text(options, 'folder') ?? 'holdfast-demo'
  prepareFolder(folder)
  const file = global.store === undefined ? join(folder, 'agents.db') : undefined
  const cache = text(options, 'cache')
  const store = global.store ?? `sqlite:${file}`
  // On a store that others use as well, each run has a tenant of its own.
  const tenant = global.tenant ?? (file === undefined ? `demo-${Date.now().toString(36)}` : 'default')
  const { runDemo } = await import('../../../demo/run-demo.js')
  const screen = new DemoScreen(output, { ...settings, store })
  let report: DemoReport
  try {
    const where = {
      store,
      tenant,
      folder,
      ...(file === undefined ? {} : { file }),
      ...(cache === undefined ? {} : { cache }),
    }
    report = await runDemo({ ...settings, ...where, signal, onProgress: (progress) => screen.show(progress) })
  } finally {
    screen.end()
  }
  // Commands are as one would type them; what is kept in the folder holds no password.
  const commands = commandsFor(report, global.tenant === undefined && file !== undefined)
  const shown = { ...report, store: describeStoreUrl(report.store) }
  writeFileSync(join(folder, MARK), `${toJson(shown, true)}\n`)
  if (output.json) output.jsonLine({ ...shown, commands })
  else printReport(output, shown, commands)
  return isGoodDay(report) ? EXIT.ok : EXIT.failed
}

function readOptions(options: Options) {
  const count = (name: string, fallback: number, most: number) =>
    parseCount(text(options, name) ?? String(fallback), `--${name}`, most)
  const leaseMs = parseDuration(text(options, 'lease') ?? '2s', '--lease')
  if (leaseMs < 100) throw usageError('--lease is below 100ms.', 'Pass 100ms or more, for example 2s.')
  return {
    sessions: count('sessions', 847, 100_000),
    workers: count('workers', 3, 100),
    killEveryMs: parseDuration(text(options, 'killEvery') ?? '5s', '--kill-every'),
    leaseMs,
    latencyMs: parseDuration(text(options, 'latency') ?? '150ms', '--latency'),
    seed: count('seed', 847, 2 ** 31),
  }
}

function prepareFolder(folder: string): void {
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    if (!existsSync(join(folder, MARK))) {
      throw new CliError('conflict', `${folder} is not empty, and no demo made it.`, {
        remedy: 'Pass --folder with another path; nothing was written.',
        data: { folder },
      })
    }
    rmSync(folder, { recursive: true })
  }
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, MARK), '{}\n')
}

/** Three things to try on what the demo left behind. */
function commandsFor({ store, tenant, example }: DemoReport, plain: boolean): readonly string[] {
  const where = `--store ${shellQuote(store)}${plain ? '' : ` --tenant ${shellQuote(tenant)}`}`
  return [`history ${example}`, `fork ${example} --at ~3 --name what-if`, 'stats'].map(
    (command) => `${ownName()} ${command} ${where}`,
  )
}

/** What reaches this command again from where it was called: not everywhere is it on the path. */
function ownName(): string {
  const called = process.argv[1] ?? ''
  if (basename(called) === 'holdfast') return basename(dirname(called)) === '.bin' ? 'npx holdfast' : 'holdfast'
  return `node ${shellQuote(relative(process.cwd(), fileURLToPath(new URL('../../main.js', import.meta.url))))}`
}
