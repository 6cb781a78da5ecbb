import type { Holdfast, ThreadSummary } from '../../../index.js'
import { recordedEvents } from '../../../internal.js'

/** What the entries of some threads tell of how their runs went. */
export interface RunSample {
  /** Branches that were read. */
  readonly threads: number
  /** Branches that could not be read: damaged, or gone in the meantime. */
  readonly unreadable: number
  readonly runs: {
    readonly started: number
    readonly completed: number
    readonly failed: number
    readonly paused: number
  }
  readonly resumes: { readonly attempts: number; readonly succeeded: number; readonly takeovers: number }
  /** Stored bytes of each checkpoint, sorted. */
  readonly bytes: readonly number[]
  readonly tokens: { readonly spent: number; readonly savedByResuming: number }
}

const ENDS: ReadonlySet<string> = new Set(['end', 'wait', 'park', 'release'])
const AT_ONCE = 8

/** Reads the entries of these branches. */
export async function sampleRuns(
  hf: Holdfast,
  branches: readonly ThreadSummary[],
  onStep: () => void,
): Promise<RunSample> {
  const total = new Counts()
  let next = 0
  let unreadable = 0
  const walk = async () => {
    for (let at = next++; at < branches.length; at = next++) {
      try {
        total.add(await countBranch(hf, branches[at] as ThreadSummary))
      } catch {
        unreadable++
      }
      onStep()
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, walk))
  const { started, completed, failed, paused, attempts, succeeded, takeovers, spent, saved, bytes } = total
  return {
    threads: branches.length - unreadable,
    unreadable,
    runs: { started, completed, failed, paused },
    resumes: { attempts, succeeded, takeovers },
    bytes: bytes.sort((a, b) => a - b),
    tokens: { spent, savedByResuming: saved },
  }
}

class Counts {
  started = 0
  completed = 0
  failed = 0
  paused = 0
  attempts = 0
  succeeded = 0
  takeovers = 0
  spent = 0
  saved = 0
  readonly bytes: number[] = []

  add(other: Counts): void {
    this.started += other.started
    this.completed += other.completed
    this.failed += other.failed
    this.paused += other.paused
    this.attempts += other.attempts
    this.succeeded += other.succeeded
    this.takeovers += other.takeovers
    this.spent += other.spent
    this.saved += other.saved
    for (const size of other.bytes) this.bytes.push(size)
  }
}

async function countBranch(hf: Holdfast, { thread, branch }: ThreadSummary): Promise<Counts> {
  const counts = new Counts()
  const log = await hf.log(thread, { branch })
  const view = hf.inspect(thread, { branch })
  let oldest = log.fold.seq + 1
  for (;;) {
    const page = await view.history({ events: false, limit: 1000, before: oldest, all: true })
    for (const { bytes } of page) counts.bytes.push(bytes)
    const last = page.at(-1)
    if (last === undefined) break
    oldest = last.seq
  }
  // Held: somebody claimed it and has not let go. Going on: a resumed run has not ended yet.
  const now = { held: false, goingOn: false, tokens: 0 }
  // Every claim raises it. The oldest entry that was kept may be anything.
  let epoch = oldest === 0 ? 0 : undefined
  for await (const { header, body } of log.entries(oldest)) {
    const isClaim = epoch !== undefined && header.epoch > epoch
    epoch = header.epoch
    if (isClaim) {
      // Whoever held it vanished, or was forced out.
      if (now.held) counts.takeovers++
      now.held = true
    }
    for (const event of recordedEvents(body)) countEvent(counts, now, event)
    if (ENDS.has(header.kind)) now.held = false
  }
  return counts
}

function countEvent(
  counts: Counts,
  now: { held: boolean; goingOn: boolean; tokens: number },
  event: ReturnType<typeof recordedEvents>[number],
): void {
  if (event.type === 'usage') {
    const { input, output } = event.usage as Readonly<Record<string, unknown>>
    const tokens = number(input) + number(output)
    counts.spent += tokens
    now.tokens += tokens
    return
  }
  if (event.type !== 'run') return
  switch (event.status) {
    case 'started':
      counts.started++
      now.held = true
      now.tokens = 0
      return
    case 'resumed':
      counts.attempts++
      // Started over, the run would spend again what it has spent so far.
      counts.saved += now.tokens
      now.goingOn = true
      return
    case 'completed':
    case 'limited':
      counts.completed++
      break
    case 'paused':
      counts.paused++
      break
    case 'failed':
    case 'incompatible':
      counts.failed++
      now.goingOn = false
  }
  if (now.goingOn) counts.succeeded++
  now.goingOn = false
  now.held = false
}

function number(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}
