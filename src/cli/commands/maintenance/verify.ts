import { existsSync } from 'node:fs'
import type { Holdfast, ThreadSummary } from '../../../index.js'
import type { AnchorReport, Verification } from '../../../log/index.js'
import { CliError, usageError } from '../../cli-error.js'
import { type Command, text } from '../../command.js'
import type { CommandContext } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { findThread } from '../../input/find-thread.js'
import { clean } from '../../screen/output.js'
import { Progress } from '../../screen/progress.js'
import { formatThreadId } from '../../input/thread-id.js'

const AT_ONCE = 8

/** Walks every entry of threads: hashes, parents, bodies, blobs, keyframes and the row in the index. */
export const run: Command = async (context, [id], options) => {
  const places = (options['anchors'] ?? []) as readonly string[]
  // What was anchored is of the whole store, so that is what is looked at unless a thread is named.
  const all = options['all'] === true || (id === undefined && places.length > 0)
  if ((id === undefined) === !all) throw usageError('Name a thread, or pass --all.', 'See `holdfast verify --help`.')
  const hf = await context.open()
  const { output } = context
  const branches = id === undefined ? await listAll(hf) : await branchesOf(hf, id, text(options, 'branch'))
  const progress = new Progress(output, 'verifying', branches.length)
  const repair = options['repair'] === true
  const damaged: Record<string, unknown>[] = []
  const repaired: string[] = []
  let entries = 0
  let plain = 0
  let next = 0
  const walk = async () => {
    for (let at = next++; at < branches.length; at = next++) {
      const { thread, branch } = branches[at] as ThreadSummary
      const found = await hf.verify(thread, { branch, repair })
      progress.step()
      const name = `${formatThreadId(thread)} (${branch})`
      if (found === undefined) continue
      entries += found.entries
      plain += found.plain
      if (found.repairedIndex) repaired.push(name)
      if (!found.ok) damaged.push(describe(found, formatThreadId(thread), branch))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, walk))
  progress.end()
  const anchored = places.length === 0 ? undefined : await compareAnchors(context, hf, places)
  const ok = damaged.length === 0 && anchored?.ok !== false

  if (output.json)
    output.document({
      ok,
      branches: branches.length,
      entries,
      plain,
      damaged,
      repaired,
      ...(anchored ? { anchors: anchored } : {}),
    })
  else {
    for (const { thread, branch, problems, lastGood } of damaged) {
      output.line(`${output.paint('red', 'damaged')} ${String(thread)} (${String(branch)})`)
      for (const problem of problems as readonly string[]) output.line(`  ${clean(problem)}`)
      if (lastGood)
        output.line(`  The newest that verifies: ${String(lastGood)} (holdfast fork … --at ${String(lastGood)})`)
    }
    for (const name of repaired) output.line(`${output.paint('yellow', 'repaired')} the index row of ${name}`)
    if (plain > 0) {
      const many = plain === 1 ? '1 entry has' : `${plain} entries have`
      output.line(
        `${output.paint('yellow', 'plain')} ${many} no key and count only by keys.adoptPlain; hf.keys.adopt() seals them`,
      )
    }
    for (const problem of anchored?.problems ?? []) output.line(`${output.paint('red', 'put back')} ${clean(problem)}`)
    if (anchored?.ok) output.line(`${output.paint('green', 'ok')} ${anchored.checked} anchors`)
    const sum = `${branches.length} ${branches.length === 1 ? 'branch' : 'branches'}, ${entries} entries`
    output.line(damaged.length === 0 ? `${output.paint('green', 'ok')} ${sum}` : `${damaged.length} damaged of ${sum}`)
  }
  return ok ? EXIT.ok : EXIT.corrupt
}

async function compareAnchors(context: CommandContext, hf: Holdfast, files: readonly string[]): Promise<AnchorReport> {
  const { fileAnchors } = await import('../../../log/index.js')
  const paths = files.map((file) => context.path(file))
  const missing = paths.find((path) => !existsSync(path))
  if (missing !== undefined) {
    throw new CliError('not-found', `There is no file ${missing}.`, { remedy: 'Check --anchors.' })
  }
  return hf.verifyAnchors(...paths.map((path) => fileAnchors(path)))
}

function describe({ problems, lastGood }: Verification, thread: string, branch: string): Record<string, unknown> {
  return { thread, branch, problems, lastGood: lastGood ?? null }
}

async function branchesOf(hf: Holdfast, id: string, branch: string | undefined): Promise<readonly ThreadSummary[]> {
  if (branch !== undefined) return [await findThread(hf, id, branch)]
  const { thread } = await findThread(hf, id)
  return (await hf.threads({ thread, limit: 10_000 })).threads
}

/** All branches of the tenant, in an order that changes in the meantime do not disturb. */
export async function listAll(hf: Holdfast): Promise<readonly ThreadSummary[]> {
  const found: ThreadSummary[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await hf.threads({ order: 'created', direction: 'asc', limit: 1000, ...(cursor ? { cursor } : {}) })
    found.push(...page.threads)
    cursor = page.cursor
    if (cursor === undefined) return found
  }
}
