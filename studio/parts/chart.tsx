import { time } from '../format.js'

const [WIDTH, HEIGHT, PAD] = [240, 56, 2]

/** A small chart: bars for what was counted, a line for what was measured. The numbers are beside it, in words. */
export function Chart(props: {
  readonly label: string
  readonly value: string
  readonly note?: string
  readonly points: readonly (number | undefined)[]
  readonly kind?: 'bars' | 'line'
  readonly tone?: string
  readonly from: number
  readonly stepMs: number
}) {
  const { label, value, note, points, kind = 'bars', tone = 'accent', from, stepMs } = props
  const most = Math.max(...points.map((one) => one ?? 0), 0)
  const step = WIDTH / Math.max(1, points.length)
  const height = (one: number) => (most === 0 ? 0 : Math.max(1, (one / most) * (HEIGHT - 2 * PAD)))
  const line = points.flatMap((one, i) =>
    one === undefined ? [] : [`${(i + 0.5) * step},${HEIGHT - PAD - height(one)}`],
  )
  return (
    <figure class="chart" data-tone={tone}>
      <figcaption>
        <span class="chart-label">{label}</span>
        <span class="chart-value">{value}</span>
        {note && <span class="chart-note">{note}</span>}
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label} over time: ${value}`}
      >
        <path class="chart-ground" d={`M0 ${HEIGHT - 1}H${WIDTH}`} />
        {kind === 'line'
          ? line.length > 1 && <polyline class="chart-line" points={line.join(' ')} />
          : points.map((one, i) =>
              one ? (
                <rect
                  key={i}
                  x={i * step + 0.5}
                  width={step - 1}
                  y={HEIGHT - PAD - height(one)}
                  height={height(one)}
                  rx="1"
                />
              ) : null,
            )}
      </svg>
      <div class="chart-axis">
        <span>{time(from)}</span>
        <span>{time(from + stepMs * points.length)}</span>
      </div>
    </figure>
  )
}
