import type { ProcessMetrics, QueueAge, WorkerStatus } from '../../types.js'

type Counted = Pick<ProcessMetrics, 'counters' | 'histograms'>

/** What a process has counted, in Prometheus' text format, under the names that OpenTelemetry's exporters write. */
export function writeMetrics(counted: Counted | undefined, worker: WorkerStatus, queue: QueueAge | undefined): string {
  const { counters = {}, histograms = {} } = counted ?? {}
  const gauges: readonly (readonly [name: string, value: number])[] = [
    ['holdfast_worker_places', worker.places],
    ['holdfast_worker_busy', worker.busy],
    ['holdfast_worker_draining', worker.state === 'draining' ? 1 : 0],
    ...(queue
      ? ([
          ['holdfast_queue_due', queue.due],
          ['holdfast_queue_age_seconds', queue.oldestMs / 1000],
        ] as const)
      : []),
  ]
  return [
    ...gauges.map(([name, value]) => `# TYPE ${name} gauge\n${name} ${value}\n`),
    ...Object.entries(counters).map(([name, value]) => {
      const total = `${plain(name)}_total`
      return `# TYPE ${total} counter\n${total} ${value}\n`
    }),
    ...Object.entries(histograms).map(([name, histogram]) => writeHistogram(plain(name), histogram)),
  ].join('')
}

function writeHistogram(bare: string, { bounds, counts, sum }: Counted['histograms'][string]): string {
  const name = bare.endsWith('_duration') ? `${bare}_milliseconds` : bare
  let below = 0
  const buckets = counts.map((count, i) => {
    below += count
    return `${name}_bucket{le="${bounds[i] ?? '+Inf'}"} ${below}\n`
  })
  return `# TYPE ${name} histogram\n${buckets.join('')}${name}_sum ${sum}\n${name}_count ${below}\n`
}

function plain(name: string): string {
  return name.replaceAll(/\W/g, '_')
}
