import { useSignal } from '@preact/signals'
import { brief, visible } from '../format.js'
import { LongText } from './long-text.js'

const PAGE = 100

/** Any JSON, opened level by level: what is closed is not in the page at all. */
export function Json(props: {
  readonly value: unknown
  readonly name?: string
  readonly open?: boolean
  readonly depth?: number
}) {
  const { value, name, open = false, depth = 0 } = props
  const isContainer = typeof value === 'object' && value !== null
  if (!isContainer) {
    return (
      <div class="json-row">
        <Name name={name} />
        <Scalar value={value} />
      </div>
    )
  }
  return <Container value={value} name={name} open={open} depth={depth} />
}

function Container(props: {
  readonly value: object
  readonly name: string | undefined
  readonly open: boolean
  readonly depth: number
}) {
  const { value, name, depth } = props
  const open = useSignal(props.open)
  const shown = useSignal(PAGE)
  const isList = Array.isArray(value)
  const keys = Object.keys(value)
  const size = keys.length
  if (size === 0) {
    return (
      <div class="json-row">
        <Name name={name} />
        <span class="json-brief">{isList ? '[]' : '{}'}</span>
      </div>
    )
  }
  return (
    <div class="json-container">
      <button type="button" class="json-toggle" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
        <Name name={name} />
        <span class="json-brief">
          {isList
            ? `${size} ${size === 1 ? 'item' : 'items'}`
            : open.value
              ? `${size} ${size === 1 ? 'key' : 'keys'}`
              : outline(value)}
        </span>
      </button>
      {open.value && (
        <div class="json-children">
          {keys.slice(0, shown.value).map((key) => (
            <Json key={key} name={key} value={(value as Record<string, unknown>)[key]} depth={depth + 1} />
          ))}
          {size > shown.value && (
            <button type="button" class="more" onClick={() => (shown.value += PAGE)}>
              Show more ({size - shown.value})
            </button>
          )}
        </div>
      )}
    </div>
  )
}

/** What an object holds, without writing all of it: it may be large. */
function outline(value: object): string {
  const said = messageOf(value)
  if (said !== undefined) return said
  const parts: string[] = []
  for (const [key, one] of Object.entries(value).slice(0, 4)) {
    parts.push(
      `${key}: ${typeof one === 'object' && one !== null ? (Array.isArray(one) ? '[…]' : '{…}') : brief(one, 24)}`,
    )
  }
  return visible(parts.join(', '))
}

/** A message by who said what: its id and version are the same for everyone. */
function messageOf(value: object): string | undefined {
  const { role, parts } = value as { readonly role?: unknown; readonly parts?: unknown }
  if (typeof role !== 'string' || !Array.isArray(parts)) return undefined
  const said = (parts as readonly { readonly text?: unknown; readonly name?: unknown }[]).map((part) =>
    typeof part?.text === 'string' ? part.text.slice(0, 120) : String(part?.name ?? ''),
  )
  return brief(`${role}: ${said.join(' ')}`)
}

function Name({ name }: { readonly name: string | undefined }) {
  return name === undefined ? null : <span class="json-name">{visible(name.slice(0, 200))}</span>
}

function Scalar({ value }: { readonly value: unknown }) {
  if (typeof value === 'string') {
    return (
      <span class="json-string">
        <LongText text={value} first={400} />
      </span>
    )
  }
  return <span class="json-scalar">{String(value)}</span>
}
