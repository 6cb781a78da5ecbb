import { toPlain } from './to-plain.js'

/** A piece of what a graph tells while it runs. */
export interface GraphChunk {
  /** As clients ask for it: `messages-tuple` for LangGraph's `messages`. */
  readonly mode: string
  /** The event's name: with the place of a subgraph behind it. */
  readonly event: string
  readonly data: unknown
}

interface Piece {
  readonly id?: string
  concat?(other: Piece): Piece
}

/** Turns what a graph streams into what its clients asked for. */
export class GraphChunks {
  readonly #modes: readonly string[]
  readonly #tell: (chunk: GraphChunk) => void
  readonly #messages = new Map<string, Piece>()

  constructor(modes: readonly string[], tell: (chunk: GraphChunk) => void) {
    this.#modes = modes
    this.#tell = tell
  }

  /** The modes by LangGraph's own names. */
  get graphModes(): string[] {
    return [...new Set(this.#modes.map((mode) => (mode === 'messages-tuple' ? 'messages' : mode)))]
  }

  /** A piece as it comes: with the place of its subgraph before it, if those were asked for. */
  add(chunk: readonly unknown[]): void {
    const [ns, mode, data] = (chunk.length === 3 ? chunk : [[], ...chunk]) as readonly [string[], string, unknown]
    if (mode === 'messages') this.#message(ns, data)
    else this.#tell({ mode, event: named(mode, ns), data: toPlain(data) })
  }

  #message(ns: readonly string[], data: unknown): void {
    const tuple = toPlain(data) as readonly [unknown, unknown]
    if (this.#modes.includes('messages-tuple')) {
      this.#tell({ mode: 'messages-tuple', event: named('messages', ns), data: tuple })
    }
    if (!this.#modes.includes('messages')) return
    const [piece] = data as readonly [Piece, unknown]
    const id = piece.id ?? ''
    const known = this.#messages.get(id)
    const tell = (event: string, value: unknown) => this.#tell({ mode: 'messages', event, data: value })
    if (known === undefined) tell(named('messages/metadata', ns), { [id]: { metadata: tuple[1] } })
    const isPiece = typeof piece.concat === 'function'
    const whole = isPiece && known?.concat ? known.concat(piece) : piece
    this.#messages.set(id, whole)
    tell(named(isPiece ? 'messages/partial' : 'messages/complete', ns), [toPlain(whole)])
  }
}

function named(event: string, ns: readonly string[]): string {
  return [event, ...ns].join('|')
}
