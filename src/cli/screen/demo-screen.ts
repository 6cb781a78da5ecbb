import type { DemoProgress } from '../../demo/run-demo.js'
import type { Output } from './output.js'

const LINE_EVERY_MS = 5000
const BAR = 36
/** What stands beside the bar, and above the workers. */
const BESIDE = 42
const ABOVE = 8
const HOLD_BAR = 16

interface Day {
  readonly sessions: number
  readonly workers: number
  readonly killEveryMs: number
  readonly store: string
}

/** Shows how the day goes: drawn in place on a terminal, a line now and then elsewhere. */
export class DemoScreen {
  readonly #output: Output
  readonly #day: Day
  #drawn = 0
  #saidAt = Number.NEGATIVE_INFINITY
  #phase = ''
  readonly #restore = () => this.#output.raw('\u001b[?7h\u001b[?25h')

  constructor(output: Output, day: Day) {
    this.#output = output
    this.#day = day
  }

  show(progress: DemoProgress): void {
    if (this.#output.terminal) this.#draw(progress)
    else this.#say(progress)
  }

  /** Leaves the last picture where it is, and gives the cursor back. */
  end(): void {
    if (this.#drawn === 0) return
    process.off('exit', this.#restore)
    this.#restore()
    this.#output.line()
    this.#drawn = 0
  }

  #draw(progress: DemoProgress): void {
    if (this.#drawn === 0) {
      // A cursor that stays hidden outlives the program. Lines that don't fit are cut: a wrapped one would be drawn twice.
      process.once('exit', this.#restore)
      this.#output.raw('\u001b[?25l\u001b[?7l')
    }
    const lines = this.#lines(progress)
    const up = this.#drawn > 0 ? `\u001b[${this.#drawn}A` : ''
    // Each line is cleared to its end, and what the last picture had more of, too.
    this.#output.raw(`\r${up}${lines.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`)
    this.#drawn = lines.length
  }

  #lines(progress: DemoProgress): readonly string[] {
    const output = this.#output
    const dim = (text: string) => output.paint('dim', text)
    const { sessions, done, active, turns, turnsInAll, kills, takeovers, orphans, lastKill } = progress
    const reading = progress.phase === 'reading back'
    const part = reading ? progress.checked / sessions : turns / turnsInAll
    const { columns, rows } = output.size
    const width = Math.max(8, Math.min(BAR, columns - BESIDE))
    const filled = Math.round(part * width)
    const bar = output.paint(reading ? 'cyan' : 'green', '█'.repeat(filled)) + dim('░'.repeat(width - filled))
    const title = `${output.paint('bold', 'Black Friday')}  ${sessions} conversations on ${nameOf(this.#day.store)}`
    const how = reading
      ? `reading back ${progress.checked} of ${sessions}`
      : `${group(turns)} of ${group(turnsInAll)} turns  ${Math.round(progress.turnsPerSecond)}/s`
    const label = (text: string) => dim(text.padEnd(15))
    const told = [
      `${label('takeovers')}${takeovers}`,
      progress.takeoverMsP50 === null ? '' : `p50 ${seconds(progress.takeoverMsP50)}`,
      progress.takeoverMsP99 === null ? '' : `p99 ${seconds(progress.takeoverMsP99)}`,
      orphans > 0 ? output.paint('yellow', `${orphans} waiting`) : '',
    ]
    const workers = progress.workers.map(({ name, pid, startedAt, ready, holds }) => {
      const held = Math.min(HOLD_BAR, Math.ceil(holds.size / 2))
      const age = `${Math.floor((Date.now() - startedAt) / 1000)} s`
      const what = ready
        ? `${output.paint('cyan', '▪'.repeat(held))}${' '.repeat(HOLD_BAR - held)} ${holds.size} held`
        : output.paint('yellow', 'starting')
      return `${label(name)}${dim(`pid ${String(pid).padEnd(8)}${age.padStart(6)}`)}  ${what}`
    })
    // Always as many lines as there are places, so that the picture does not jump when a worker is replaced.
    const places = reading ? 0 : this.#day.workers - workers.length
    const empty = Array.from({ length: Math.max(0, places) }, () => '')
    // What is taller than the terminal can't be drawn over: it would be drawn further down each time.
    const most = Math.max(1, rows - ABOVE - 1)
    const lines = [...workers, ...empty]
    const shown =
      lines.length <= most ? lines : [...lines.slice(0, most - 1), dim(`and ${lines.length - most + 1} more`)]
    return [
      `${title}  ${dim(clock(progress.elapsedMs))}`,
      '',
      `${bar}  ${String(Math.floor(part * 100)).padStart(3)} %  ${how}`,
      '',
      `${label('conversations')}${output.paint('green', `${done} done`)}  ${active} talking  ${sessions - done - active} to come`,
      `${label('kills')}${kills === 0 ? '0' : output.paint('red', String(kills))}${
        lastKill === null ? '' : dim(`   last: ${lastKill.name} with ${lastKill.held} conversations`)
      }`,
      told.filter((text) => text !== '').join('  '),
      '',
      ...shown,
    ]
  }

  #say(progress: DemoProgress): void {
    const now = Date.now()
    if (now - this.#saidAt < LINE_EVERY_MS && progress.phase === this.#phase) return
    this.#saidAt = now
    this.#phase = progress.phase
    const line = describe(progress)
    if (this.#output.json) this.#output.error(line)
    else this.#output.line(line)
  }
}

function describe(progress: DemoProgress): string {
  const { phase, sessions, done, active, turns, turnsInAll, turnsPerSecond, kills, takeovers, takeoverMsP50 } = progress
  const at = clock(progress.elapsedMs)
  if (phase === 'opening') return `${at}  starting ${sessions} conversations`
  if (phase === 'reading back') return `${at}  reading back ${progress.checked} of ${sessions}`
  const share = Math.floor((turns / turnsInAll) * 100)
  const took = takeoverMsP50 === null ? '' : ` (p50 ${seconds(takeoverMsP50)})`
  return `${at}  ${share} %  ${done} done, ${active} talking, ${turns} turns, ${Math.round(turnsPerSecond)}/s, ${kills} kills, ${takeovers} takeovers${took}`
}

/** `SQLite`, `Postgres`: what people call it. */
export function nameOf(store: string): string {
  const [scheme = ''] = store.split(':')
  if (scheme.startsWith('postgres')) return 'Postgres'
  if (scheme.startsWith('redis')) return 'Redis'
  return scheme === 'sqlite' ? 'SQLite' : 'files'
}

export function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}

export function group(count: number): string {
  return count.toLocaleString('en-US')
}

function clock(ms: number): string {
  const all = Math.floor(ms / 1000)
  return `${Math.floor(all / 60)}:${String(all % 60).padStart(2, '0')}`
}
