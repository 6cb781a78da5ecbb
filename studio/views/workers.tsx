import type { SeriesInfo, ThreadInfo } from '../../src/client/index.js'
import { client } from '../api.js'
import { cost, duration, nameOf, now, number, plural, visible } from '../format.js'
import { Chip, Empty, Head, Problem, Status, Time } from '../parts/basics.js'
import { Chart } from '../parts/chart.js'
import { useResource } from '../resource.js'
import { to } from '../router.js'
import { may } from '../session.js'

interface Totals {
  readonly processes: number
  readonly counters: Readonly<Record<string, number>>
  readonly histograms: Readonly<
    Record<string, { readonly bounds: readonly number[]; readonly counts: readonly number[] }>
  >
}

/** Who holds what, what waits, and what all processes have counted. */
export function WorkersView() {
  const found = useResource(() => client.value.workers(), { everyMs: 3000 })
  const figures = useResource(() => (may('admin') ? client.value.metrics() : undefined), { everyMs: 5000 })
  const read = found.value.value
  const metrics = figures.value.value
  const oldest = read?.queue[0]
  return (
    <div class="view-scroll" tabIndex={0} role="region" aria-label="Runs and workers">
      <Head
        title="Runs and workers"
        note={
          read && (
            <>
              {plural(read.workers.length, 'worker')} at work · {plural(read.held.length, 'thread')} held ·{' '}
              {plural(read.queue.length, 'thread')} waiting
              {oldest?.wakeAt && (
                <> · the oldest for {duration(Math.max(0, now.value - new Date(oldest.wakeAt).getTime()))}</>
              )}
            </>
          )
        }
      />
      <Problem text={found.error.value ?? figures.error.value} />
      {metrics && <Figures total={metrics.total as unknown as Totals} series={metrics.series} />}
      <section class="block">
        <h2>Workers</h2>
        {read?.workers.length === 0 && (
          <Empty title="Nobody holds a thread now">A worker shows here while it runs one.</Empty>
        )}
        <ul class="workers">
          {read?.workers.map(({ owner, threads, leaseMs }) => (
            <li key={owner} class="card">
              <code>{visible(owner)}</code>
              <span>{plural(threads, 'thread')}</span>
              <span class="hint">lease for {duration(leaseMs)}</span>
            </li>
          ))}
        </ul>
      </section>
      <Rows title="Held now" rows={read?.held ?? []} none="None." kind="held" />
      <Rows title="Waiting for a worker" rows={read?.queue ?? []} none="Nothing is due." kind="queue" />
    </div>
  )
}

function Rows(props: {
  readonly title: string
  readonly rows: readonly ThreadInfo[]
  readonly none: string
  readonly kind: 'held' | 'queue'
}) {
  const { title, rows, none, kind } = props
  return (
    <section class="block">
      <h2>{title}</h2>
      {rows.length === 0 ? (
        <p class="hint">{none}</p>
      ) : (
        <div class="table-frame" tabIndex={0} role="region" aria-label={title}>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">Thread</th>
                <th scope="col">Status</th>
                <th scope="col">{kind === 'held' ? 'By' : 'Program'}</th>
                <th scope="col">{kind === 'held' ? 'Lease' : 'Due since'}</th>
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, 200).map((row) => (
                <tr key={`${row.id} ${row.branch}`}>
                  <td>
                    <a href={to(['thread', row.id], row.branch === 'main' ? {} : { branch: row.branch })}>
                      {nameOf(row.thread)}
                    </a>
                    {row.branch !== 'main' && <Chip>{visible(row.branch)}</Chip>}
                  </td>
                  <td>
                    <Status status={row.status} />
                  </td>
                  <td>{visible(String(kind === 'held' ? row.claimedBy : (row.metadata['holdfast.program'] ?? '')))}</td>
                  <td>{kind === 'held' ? duration(row.leaseMs ?? 0) : row.wakeAt && <Time at={row.wakeAt} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

function Figures({ total, series }: { readonly total: Totals; readonly series: SeriesInfo }) {
  const counted = (name: string) => total.counters[`holdfast.${name}`] ?? 0
  const over = (...names: readonly string[]) =>
    Array.from({ length: lengthOf(series) }, (_, i) =>
      names.reduce((sum, name) => sum + (series.values[`holdfast.${name}`]?.[i] ?? 0), 0),
    )
  const mean = (name: string) => {
    const [counts, sums] = [series.values[`holdfast.${name}.count`], series.values[`holdfast.${name}.sum`]]
    return Array.from({ length: lengthOf(series) }, (_, i) =>
      (counts?.[i] ?? 0) > 0.001 ? (sums?.[i] ?? 0) / (counts?.[i] ?? 1) : undefined,
    )
  }
  const rate = Array.from({ length: lengthOf(series) }, (_, i) => {
    const tried = series.values['holdfast.resume.attempts']?.[i] ?? 0
    return tried > 0.001 ? (series.values['holdfast.resume.succeeded']?.[i] ?? 0) / tried : undefined
  })
  const attempts = counted('resume.attempts')
  const at = { from: series.from, stepMs: series.stepMs }
  const p = (name: string, part: number) => quantile(total.histograms[`holdfast.${name}`], part)
  return (
    <section class="block">
      <h2>Figures of {plural(total.processes, 'process', 'processes')}</h2>
      <div class="charts">
        <Chart
          {...at}
          label="Runs started"
          value={number(counted('runs.started'))}
          note={`${number(counted('runs.completed'))} completed, ${number(counted('runs.failed'))} failed`}
          points={over('runs.started')}
        />
        <Chart
          {...at}
          label="Resume success"
          value={attempts === 0 ? '–' : `${Math.round((100 * counted('resume.succeeded')) / attempts)} %`}
          note={`of ${number(attempts)}`}
          points={rate}
          kind="line"
          tone="good"
        />
        <Chart
          {...at}
          label="Takeovers"
          value={number(counted('takeovers'))}
          note={
            p('takeover.duration', 0.5) === undefined ? undefined : `p50 ${duration(p('takeover.duration', 0.5) ?? 0)}`
          }
          points={over('takeovers')}
          tone="ask"
        />
        <Chart
          {...at}
          label="Save, on average"
          value={lastOf(mean('checkpoint.save.duration'))}
          note={`p99 ≤ ${ms(p('checkpoint.save.duration', 0.99))}`}
          points={mean('checkpoint.save.duration')}
          kind="line"
        />
        <Chart
          {...at}
          label="Load, on average"
          value={lastOf(mean('checkpoint.load.duration'))}
          note={`p99 ≤ ${ms(p('checkpoint.load.duration', 0.99))}`}
          points={mean('checkpoint.load.duration')}
          kind="line"
        />
        <Chart
          {...at}
          label="Tokens"
          value={number(counted('tokens.input') + counted('tokens.output'))}
          note={`${number(counted('tokens.cached'))} cached`}
          points={over('tokens.input', 'tokens.output')}
        />
        <Chart
          {...at}
          label="Cost"
          value={cost(counted('cost'))}
          note="by the agents' prices"
          points={over('cost')}
          tone="ask"
        />
        <Chart
          {...at}
          label="Tokens saved by resuming"
          value={number(counted('tokens.saved'))}
          points={over('tokens.saved')}
          tone="good"
        />
        <Chart
          {...at}
          label="Unknown effects"
          value={number(counted('effects.unknown'))}
          note={`${number(counted('retries'))} retries`}
          points={over('effects.unknown')}
          tone="bad"
        />
      </div>
    </section>
  )
}

function lengthOf({ values }: SeriesInfo): number {
  return Object.values(values)[0]?.length ?? 0
}

function lastOf(points: readonly (number | undefined)[]): string {
  return ms(points.findLast((one) => one !== undefined))
}

function ms(value: number | undefined): string {
  return value === undefined ? '–' : value < 10 ? `${value.toFixed(2)} ms` : duration(value)
}

function quantile(histogram: Totals['histograms'][string] | undefined, part: number): number | undefined {
  if (histogram === undefined) return undefined
  const total = histogram.counts.reduce((sum, count) => sum + count, 0)
  let seen = 0
  for (const [i, count] of histogram.counts.entries()) {
    seen += count
    if (total > 0 && seen >= part * total) return histogram.bounds[i] ?? histogram.bounds.at(-1)
  }
  return undefined
}
