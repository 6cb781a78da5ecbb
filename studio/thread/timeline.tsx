import { useComputed } from '@preact/signals'
import type { CheckpointItem } from '../../src/client/index.js'
import { clock, cost, number, plural, time, visible } from '../format.js'
import { VirtualList } from '../parts/virtual-list.js'
import { costOf, labelOf } from './label.js'
import { type LaneRow, layLanes } from './lanes.js'
import type { ThreadModel } from './model.js'

const ROW = 34
const LANE = 14
const COLORS = 8

/** All branches as lanes, each checkpoint by its name. Choose one to go there, a second one to see what changed. */
export function Timeline({ model }: { readonly model: ThreadModel }) {
  const rows = useComputed(() => layLanes(model.checkpoints.value, model.branches.value))
  const width = useComputed(() =>
    Math.max(1, ...rows.value.map(({ lane, lines }) => Math.max(lane, ...lines.map((line) => line.lane)) + 1)),
  )
  const checkpoints = model.checkpoints.value
  const here = model.here.value
  const past = useComputed(() => new Set(model.lineage.value.map(({ id }) => id)))
  const at = here === undefined ? -1 : checkpoints.findIndex(({ id }) => id === here.id)
  return (
    <section class="timeline" aria-label="Fork tree">
      <Scrubber model={model} />
      <VirtualList
        count={checkpoints.length}
        rowHeight={ROW}
        label="Checkpoints"
        at={at}
        keyOf={(i) => checkpoints[i]?.id ?? String(i)}
        row={(i) => {
          const one = checkpoints[i]
          const lanes = rows.value[i]
          if (!one || !lanes) return null
          return (
            <Row
              checkpoint={one}
              lanes={lanes}
              width={width.value}
              isHere={one.id === here?.id}
              isMarked={one.id === model.with.value}
              isPast={past.value.has(one.id)}
              isFirst={checkpoints.findIndex(({ branch }) => branch === one.branch) === i}
              model={model}
            />
          )
        }}
      />
    </section>
  )
}

/** Moves through the past of the branch: by drag, or by the arrow keys. */
function Scrubber({ model }: { readonly model: ThreadModel }) {
  const past = model.lineage.value
  const here = model.here.value
  const at =
    here === undefined
      ? 0
      : Math.max(
          0,
          past.findIndex(({ id }) => id === here.id),
        )
  const last = Math.max(0, past.length - 1)
  return (
    <div class="scrubber">
      <input
        type="range"
        aria-label="Move in time"
        min={0}
        max={last}
        value={last - at}
        aria-valuetext={here === undefined ? 'now' : `${labelOf(here).text}, ${clock(here.at)}`}
        onInput={(event) => model.choose(past[last - Number(event.currentTarget.value)])}
      />
      <span class="scrubber-place">
        {model.at.value === undefined
          ? `now · ${plural(past.length, 'checkpoint')}`
          : `${past.length - at} of ${past.length}`}
      </span>
    </div>
  )
}

function Row(props: {
  readonly checkpoint: CheckpointItem
  readonly lanes: LaneRow
  readonly width: number
  readonly isHere: boolean
  readonly isMarked: boolean
  readonly isPast: boolean
  readonly isFirst: boolean
  readonly model: ThreadModel
}) {
  const { checkpoint, lanes, width, isHere, isMarked, isPast, isFirst, model } = props
  const label = labelOf(checkpoint)
  const spent = costOf(checkpoint)
  const choose = (event: MouseEvent) => {
    if (event.shiftKey) model.mark(checkpoint)
    else model.choose(checkpoint)
  }
  return (
    <div class="checkpoint" data-here={isHere} data-marked={isMarked} data-past={isPast} data-kind={label.kind}>
      <Lanes lanes={lanes} width={width} />
      <button
        type="button"
        class="checkpoint-name"
        aria-pressed={isHere}
        onClick={choose}
        title={`${checkpoint.id} · ${clock(checkpoint.at)}`}
      >
        <span class="checkpoint-text">{label.text}</span>
        {isFirst && <span class="chip">{visible(checkpoint.branch)}</span>}
        <span class="checkpoint-note">{[label.note, spentText(spent), label.model].filter(Boolean).join(' · ')}</span>
        <time dateTime={checkpoint.at}>{time(checkpoint.at)}</time>
      </button>
      <button
        type="button"
        class="mark"
        aria-pressed={isMarked}
        aria-label={`Compare with ${label.text} at ${checkpoint.id}`}
        title="Compare with this one (shift-click)"
        onClick={() => model.mark(checkpoint)}
      >
        ±
      </button>
    </div>
  )
}

function spentText({ tokens, cost: paid }: ReturnType<typeof costOf>): string {
  if (tokens === 0) return ''
  return paid > 0 ? `${number(tokens)} tokens · ${cost(paid)}` : `${number(tokens)} tokens`
}

function Lanes({ lanes, width }: { readonly lanes: LaneRow; readonly width: number }) {
  const x = (lane: number) => lane * LANE + LANE / 2
  const middle = ROW / 2
  return (
    <svg class="lanes" width={width * LANE} height={ROW} aria-hidden="true">
      {lanes.lines.map(({ lane, above, below }) => (
        <path key={lane} data-lane={lane % COLORS} d={`M${x(lane)} ${above ? 0 : middle}V${below ? ROW : middle}`} />
      ))}
      {lanes.joins.map((lane) => (
        <path
          key={`j${lane}`}
          data-lane={lane % COLORS}
          d={`M${x(lane)} 0C${x(lane)} ${middle} ${x(lane)} ${middle} ${x(lanes.lane)} ${middle}`}
        />
      ))}
      <circle data-lane={lanes.lane % COLORS} cx={x(lanes.lane)} cy={middle} r="4" />
    </svg>
  )
}
