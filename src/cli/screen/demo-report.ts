import type { DemoReport } from '../../demo/report.js'
import { group, nameOf, seconds } from './demo-screen.js'
import type { Cell, Output } from './output.js'

/** What the day came to, for people, and what they can try next. */
export function printReport(output: Output, report: DemoReport, commands: readonly string[]): void {
  const { sessions, completed, lost, doubled, kills, takeovers, tokensSpent, tokensIfRestarted } = report
  const none = (count: number): Cell => [group(count), count === 0 ? 'green' : 'red']
  const saved = tokensIfRestarted === 0 ? 0 : Math.round((1 - tokensSpent / tokensIfRestarted) * 100)
  output.line()
  output.fields([
    [
      'conversations completed',
      [`${group(completed)} of ${group(sessions)}`, completed === sessions ? 'green' : 'red'],
    ],
    ['lost', none(lost)],
    ['returns doubled', none(doubled)],
    [
      'turns',
      `${group(report.turns)} in ${report.seconds} s on ${nameOf(report.store)}, ${report.turnsPerSecond} a second`,
    ],
    ['returns and exchanges', `${group(report.effects)}, counted in the shop's own database`],
    ['workers killed', String(kills)],
    ['conversations taken over', `${group(takeovers)}${within(report.takeoverMsP50, report.takeoverMsP99)}`],
    ['tokens spent', `${group(tokensSpent)} in ${group(report.modelCalls)} model calls`],
    ['tokens if restarted', `${group(tokensIfRestarted)}: resuming saved ${saved} %`],
    [
      'bytes per turn',
      `${group(report.bytesPerTurn)} (${report.bytesMeasured === 'file' ? 'size of the file' : 'entries as stored'})`,
    ],
    ['saving a checkpoint', latency(report.saveMsP50, report.saveMsP99)],
    ['loading one', latency(report.loadMsP50, report.loadMsP99)],
    ...(report.cache ? [['loaded from the cache', hitRate(report.cache)] as const] : []),
    ['hash chains verified', `${report.chainsVerified} of ${Math.min(sessions, report.chainsSampled)} looked at`],
  ])
  for (const problem of report.problems) output.line(`${output.paint('red', 'problem')} ${problem}`)
  output.line(`\n${output.paint('bold', 'Try on what it left behind')}`)
  for (const command of commands) output.line(`  ${command}`)
}

function hitRate({ hits, loads, outdated }: NonNullable<DemoReport['cache']>): string {
  const share = Math.round((hits / loads) * 100)
  return `${share} % of ${group(loads)} loads; ${group(outdated)} were outdated, and read again`
}

function within(p50: number | null, p99: number | null): string {
  return p50 === null || p99 === null ? '' : `, p50 ${seconds(p50)}, p99 ${seconds(p99)} after the kill`
}

function latency(p50: number | null, p99: number | null): string {
  return p50 === null || p99 === null ? 'not measured' : `p50 up to ${p50} ms, p99 up to ${p99} ms`
}
