import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'

const AROUND = 8

/** Rows of one height, of which only those near the window are in the page: ten thousand cost as much as thirty. */
export function VirtualList(props: {
  readonly count: number
  readonly rowHeight: number
  readonly label: string
  readonly row: (index: number) => ComponentChildren
  readonly keyOf: (index: number) => string
  /** The row that must be seen. */
  readonly at?: number
  readonly onNearEnd?: () => void
}) {
  const { count, rowHeight, label, row, keyOf, at, onNearEnd } = props
  const frame = useRef<HTMLDivElement>(null)
  const top = useSignal(0)
  const height = useSignal(800)
  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return undefined
    const measure = () => {
      height.value = element.clientHeight
    }
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    const element = frame.current
    if (!element || at === undefined || at < 0) return
    const [begin, end] = [at * rowHeight, (at + 1) * rowHeight]
    if (begin < element.scrollTop) element.scrollTop = begin
    else if (end > element.scrollTop + element.clientHeight) element.scrollTop = end - element.clientHeight
  }, [at])
  const first = Math.max(0, Math.floor(top.value / rowHeight) - AROUND)
  const last = Math.min(count, Math.ceil((top.value + height.value) / rowHeight) + AROUND)
  useEffect(() => {
    if (last >= count - AROUND) onNearEnd?.()
  }, [last, count])
  const rows: ComponentChildren[] = []
  for (let index = first; index < last; index++) {
    rows.push(
      <div
        key={keyOf(index)}
        class="virtual-row"
        role="listitem"
        aria-setsize={count}
        aria-posinset={index + 1}
        style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
      >
        {row(index)}
      </div>,
    )
  }
  return (
    <div
      ref={frame}
      class="virtual"
      tabIndex={-1}
      onScroll={(event) => {
        top.value = event.currentTarget.scrollTop
      }}
    >
      <div class="virtual-space" role="list" aria-label={label} style={{ height: `${count * rowHeight}px` }}>
        {rows}
      </div>
    </div>
  )
}
