import { showHidden, showHiddenBut, showHiddenInLines } from './hidden-text.js'
import { fitColumns } from './table.js'

/** Standard output or error: a terminal, a pipe, or what a test reads. */
export interface Stream {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
}

export type Paint = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'magenta'

const CODES: Readonly<Record<Paint, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  magenta: [35, 39],
  cyan: [36, 39],
}

export interface OutputOptions {
  readonly stdout: Stream
  readonly stderr: Stream
  readonly json: boolean
  /** Standard output is a terminal: tables, color, live lines. */
  readonly terminal: boolean
  readonly color: boolean
}

export function paintText(paint: Paint, text: string): string {
  const [open, close] = CODES[paint]
  return `\u001b[${open}m${text}\u001b[${close}m`
}

/** A cell: text, or text with a color that only terminals see. */
export type Cell = string | number | readonly [text: string, paint: Paint]

/**
 * Everything a command prints. Results go to standard output, notices to standard error, so that a pipe carries results
 * only. What comes from threads passes through `clean`: stored text must not move the reader's cursor. Whatever goes to
 * a terminal is checked once more, so that no command can forget it.
 */
export class Output {
  readonly json: boolean
  readonly terminal: boolean
  readonly #options: OutputOptions

  constructor(options: OutputOptions) {
    this.#options = options
    this.json = options.json
    this.terminal = options.terminal && !options.json
  }

  line(text = ''): void {
    this.#options.stdout.write(`${forStream(this.#options.stdout, text)}\n`)
  }

  /** For people: on standard error, and not with --json. */
  note(text: string): void {
    if (!this.json) this.error(text)
  }

  error(text: string): void {
    this.#options.stderr.write(`${forStream(this.#options.stderr, text)}\n`)
  }

  /** How much the terminal shows at a time, now. */
  get size(): { readonly columns: number; readonly rows: number } {
    const { columns = 80, rows = 24 } = this.#options.stdout
    return { columns, rows }
  }

  /** To standard output as it is: for screens that are redrawn. */
  raw(text: string): void {
    this.#options.stdout.write(text)
  }

  /** Rewrites the last line of a terminal. */
  live(text: string): void {
    this.#options.stderr.write(`\r\u001b[2K${text}`)
  }

  /** One JSON document; on one line unless a person reads it. */
  document(value: unknown): void {
    this.line(toJson(value, this.#options.terminal))
  }

  /** One of many, for programs that read line by line. */
  jsonLine(value: unknown): void {
    this.line(toJson(value, false))
  }

  paint(paint: Paint, text: string): string {
    return this.#options.color ? paintText(paint, text) : text
  }

  /**
   * A table on a terminal; otherwise a header line, then lines of values, separated by tabs. A narrow terminal omits
   * the columns that can be spared, and shows the most important ones, such as ids, as completely as possible.
   */
  async table(
    names: readonly string[],
    rows: readonly (readonly Cell[])[],
    { spare = [], whole = [] }: { readonly spare?: readonly string[]; readonly whole?: readonly string[] } = {},
  ): Promise<void> {
    const texts = rows.map((row) => row.map((cell) => clean(String(typeof cell === 'object' ? cell[0] : cell))))
    if (!this.terminal) {
      for (const row of [names, ...texts]) this.line(row.map((cell) => cell.replaceAll('\t', ' ')).join('\t'))
      return
    }
    const { default: Table } = await import('cli-table3')
    const widths = fitColumns(names, texts, this.#options.stdout.columns ?? 80, { spare, whole })
    const shown = <One>(row: readonly One[]) => row.filter((_, i) => widths[i] !== 0)
    const none = Object.fromEntries(BORDERS.map((name) => [name, '']))
    const painted = texts.map((row, i) =>
      row.map((text, j) => {
        const cell = rows[i]?.[j]
        return typeof cell === 'object' ? this.paint(cell[1], text) : text
      }),
    )
    const heads = names.map((name) => this.paint('dim', name.toUpperCase()))
    const lines = [heads, ...painted].map(shown)
    for (let at = 0; at < lines.length; at += TABLE_ROWS) {
      const table = new Table({
        chars: { ...none, middle: '  ' },
        style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
        colWidths: shown(widths),
      })
      table.push(...lines.slice(at, at + TABLE_ROWS))
      this.line(table.toString().replace(/ +$/gm, ''))
    }
  }

  /** Text broken between words to fit a terminal, each further line set in. Elsewhere it stays one line. */
  wrap(text: string, indent: number): string {
    if (!this.terminal) return text
    const most = Math.max(20, (this.#options.stdout.columns ?? 80) - indent)
    const lines: string[] = []
    for (const word of text.split(' ')) {
      const line = lines.at(-1)
      if (line === undefined || line.length + 1 + word.length > most) lines.push(word)
      else lines[lines.length - 1] = `${line} ${word}`
    }
    return lines.join(`\n${' '.repeat(indent)}`)
  }

  /** Names and values, one per line; those without a value are left out. */
  fields(fields: readonly (readonly [name: string, value: Cell | undefined])[]): void {
    const shown = fields.filter((field): field is readonly [string, Cell] => field[1] !== undefined && field[1] !== '')
    const width = Math.max(...shown.map(([name]) => name.length)) + 1
    for (const [name, value] of shown) {
      const text = clean(String(typeof value === 'object' ? value[0] : value))
      const painted = typeof value === 'object' ? this.paint(value[1], text) : text
      this.line(`${this.paint('dim', `${name}:`.padEnd(width + 1))}${painted}`)
    }
  }
}

/** Laying out a table takes time with the square of its rows: 10 seconds for 10,000. */
const TABLE_ROWS = 100

const BORDERS = [
  'top',
  'top-mid',
  'top-left',
  'top-right',
  'bottom',
  'bottom-mid',
  'bottom-left',
  'bottom-right',
  'left',
  'left-mid',
  'mid',
  'mid-mid',
  'right',
  'right-mid',
]

/** Text without anything that a terminal would interpret, or that nobody would see. Line breaks become spaces. */
export function clean(text: string): string {
  return showHidden(text)
}

/** The same for text of several lines, which stay. */
export function cleanLines(text: string): string {
  return showHiddenInLines(text)
}

const PAINTED = Object.values(CODES).flatMap(([open, close]) => [open, close])
const showAllButColors = showHiddenBut(`\\u001b\\[(?:${PAINTED.join('|')})m`)

/** A pipe gets text as it is; a terminal gets nothing to interpret but our colors, and nothing invisible. */
export function forStream(stream: Stream, text: string): string {
  return stream.isTTY === true ? showAllButColors(text) : text
}

/** Stored values as JSON: dates as ISO text, bigints as digits, bytes as base64. */
export function toJson(value: unknown, pretty: boolean): string {
  const text = JSON.stringify(value, plainValue, pretty ? 2 : undefined) ?? 'null'
  // JSON leaves many characters unchanged that terminals interpret or do not show.
  return showHiddenInLines(text)
}

function plainValue(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  // A Buffer has turned itself into this by now.
  const buffer = value as { readonly type?: unknown; readonly data?: unknown } | null
  if (typeof buffer === 'object' && buffer?.type === 'Buffer' && Array.isArray(buffer.data)) {
    return Buffer.from(buffer.data as number[]).toString('base64')
  }
  return value instanceof Error ? { name: value.name, message: value.message } : value
}

/** A value on one line, cut where it gets long. */
export function brief(value: unknown, most = 100): string {
  const text = typeof value === 'string' ? value : toJson(value, false)
  return text.length > most ? `${text.slice(0, most - 1)}…` : text
}

/** As a word that a shell reads back unchanged. */
export function shellQuote(text: string): string {
  return /^[\w./:=,@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
