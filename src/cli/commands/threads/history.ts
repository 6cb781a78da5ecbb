import type { CheckpointInfo, Holdfast, ThreadIdInput } from '../../../index.js'
import type { Branch } from '../../../types.js'
import { type Command, text } from '../../command.js'
import { findThread } from '../../input/find-thread.js'
import { clean, type Output, toJson } from '../../screen/output.js'
import { formatThreadId } from '../../input/thread-id.js'
import { paintStatus } from './threads.js'
import { ago, formatBytes, parseCount } from '../../screen/times.js'

interface DrawnBranch extends Omit<Branch, 'forks'> {
  readonly checkpoints: readonly CheckpointInfo[]
  /** True when older checkpoints are not listed. */
  readonly more: boolean
  readonly forks: readonly DrawnBranch[]
}

/** The checkpoints of a thread, newest first, with its forks drawn where they leave. */
export const run: Command = async (context, [id = ''], options) => {
  const hf = await context.open()
  const { output } = context
  const only = text(options, 'branch')
  const limit = parseCount(text(options, 'limit') ?? '20', '--limit')
  const { thread } = await findThread(hf, id, only)
  const tree = await hf.inspect(thread).branches()
  const shown = only === undefined ? tree : flatten(tree).filter(({ name }) => name === only)
  const settings = { limit, all: options['all'] === true, alone: only !== undefined }
  const branches = await Promise.all(shown.map((branch) => readBranch(hf, thread, branch, settings)))
  if (output.json) {
    output.document({ id: formatThreadId(thread), thread, branches })
    return
  }
  const now = Date.now()
  for (const branch of branches) for (const line of drawBranch(output, branch, now)) output.line(line)
}

async function readBranch(
  hf: Holdfast,
  thread: ThreadIdInput,
  { forks, ...branch }: Branch,
  settings: { readonly limit: number; readonly all: boolean; readonly alone: boolean },
): Promise<DrawnBranch> {
  const { limit, all, alone } = settings
  const found = await hf.inspect(thread, { branch: branch.name }).history({ limit: limit + 1, all, events: true })
  return {
    ...branch,
    checkpoints: found.slice(0, limit),
    more: found.length > limit,
    forks: alone ? [] : await Promise.all(forks.map((fork) => readBranch(hf, thread, fork, settings))),
  }
}

function drawBranch(output: Output, branch: DrawnBranch, now: number): string[] {
  const lines = [
    `${output.paint('bold', branch.name)}  ${output.paint(paintStatus(branch.status), branch.status)}  ` +
      `${branch.entries} ${branch.entries === 1 ? 'entry' : 'entries'}`,
  ]
  const left = new Set(branch.forks)
  const nodes: (readonly [head: string, under: readonly DrawnBranch[]])[] = []
  for (const [i, checkpoint] of branch.checkpoints.entries()) {
    const next = branch.checkpoints[i + 1]
    // A fork hangs under the newest checkpoint that is not younger than where it left.
    const forks = [...left].filter(
      ({ from }) => (from?.seq ?? 0) >= checkpoint.seq || (next === undefined && !branch.more),
    )
    for (const fork of forks) left.delete(fork)
    nodes.push([describeCheckpoint(output, checkpoint, now), forks])
  }
  if (branch.more) nodes.push([output.paint('dim', '… older ones: --limit'), [...left]])
  for (const [i, [head, forks]] of nodes.entries()) {
    const last = i === nodes.length - 1
    lines.push(`${last ? '└─' : '├─'} ${head}`)
    const rail = last ? '   ' : '│  '
    for (const [j, fork] of forks.entries()) {
      const [first = '', ...rest] = drawBranch(output, fork, now)
      const lastFork = j === forks.length - 1
      const from = output.paint('dim', ` (from ${fork.from?.branch} ${fork.from?.seq})`)
      lines.push(`${rail}${lastFork ? '└─' : '├─'} ${first}${from}`)
      lines.push(...rest.map((line) => `${rail}${lastFork ? '   ' : '│  '}${line}`))
    }
  }
  return lines
}

function describeCheckpoint(output: Output, info: CheckpointInfo, now: number): string {
  const { id, seq, kind, bytes, at } = info
  const when = output.terminal ? ago(at, now) : at.toISOString()
  const what = describeWork(info)
  const line = `${String(seq).padStart(3)}  ${kind.padEnd(7)} ${output.paint('cyan', id)}  ${formatBytes(bytes)}  ${when}`
  return what === '' ? line : `${line}  ${what}`
}

/** What was done: `model deepseek-v3.2`, `tool refund failed`, `answered by ada: {"approved":true}`. */
function describeWork({ steps = [], events = [] }: CheckpointInfo): string {
  const done = steps.map(({ kind, name, status, model }) => {
    const what = kind === 'model' ? `model ${model ?? name}` : `${kind} ${name}`
    return status === 'completed' ? what : `${what} ${status}`
  })
  const answers = events.flatMap((event) => {
    if (event.type === 'pause') return [`asks: ${event.kind}`]
    if (event.type !== 'answer') return []
    const who = event.expired ? 'expired' : `answered${event.by === undefined ? '' : ` by ${event.by}`}`
    return [event.value === undefined ? who : `${who}: ${brief(toJson(event.value, false))}`]
  })
  return clean([...done, ...answers].join(', '))
}

function brief(json: string): string {
  return json.length > 60 ? `${json.slice(0, 59)}…` : json
}

function flatten(tree: readonly Branch[]): readonly Branch[] {
  return tree.flatMap((branch) => [branch, ...flatten(branch.forks)])
}
