import { InvalidOptionError } from '../core/errors.js'
import { checkOptionNames } from '../core/wording/option-names.js'

/** How long chunks are, in characters. */
export interface SplitTextOptions {
  /** The maximum number of characters in a chunk. Default 1,500. */
  readonly maxLength?: number
  /** How many characters from the end of a chunk the next one repeats at its beginning. Default 150. */
  readonly overlap?: number
}

/** A piece of a text and its position. */
export interface TextChunk {
  readonly text: string
  /** Of the first character. */
  readonly start: number
}

/** Where a text is best cut, best first: between sections, paragraphs, lines, sentences, words. */
const CUTS: readonly RegExp[] = [/\n(?=#{1,6} )/g, /\n\s*\n/g, /\n/g, /[.!?…]\s+/g, /\s+/g]

/** Splits a text into chunks that end where the text allows it: at a heading, a paragraph, a sentence or a word. */
export function splitText(text: string, options: SplitTextOptions = {}): readonly TextChunk[] {
  checkOptionNames('splitText()', options, { maxLength: true, overlap: true })
  const { maxLength = 1500, overlap = Math.min(150, Math.floor(maxLength / 10)) } = options
  check('maxLength', maxLength, 1)
  check('overlap', overlap, 0)
  if (overlap >= maxLength) {
    throw new InvalidOptionError('overlap', `must be less than maxLength (${maxLength}), not ${overlap}`, 'Lower it.')
  }
  const chunks: TextChunk[] = []
  let start = skipSpace(text, 0)
  while (start < text.length) {
    const end = start + maxLength >= text.length ? text.length : cutBefore(text, start, start + maxLength)
    chunks.push({ text: text.slice(start, end).trimEnd(), start })
    if (end >= text.length) break
    start = nextStart(text, start, end, overlap)
  }
  return chunks.filter((chunk) => chunk.text !== '')
}

/** The best cut in the second half of what fits; chunks that are much too short mean little on their own. */
function cutBefore(text: string, start: number, most: number): number {
  const from = start + Math.ceil((most - start) / 2)
  const part = text.slice(from, most)
  for (const cut of CUTS) {
    let at = -1
    for (const match of part.matchAll(cut)) at = match.index + match[0].length
    if (at > 0) return from + at
  }
  // Not through a surrogate pair: half a character can't be stored as text.
  const code = text.charCodeAt(most - 1)
  return code >= 0xd800 && code <= 0xdbff && most - 1 > start ? most - 1 : most
}

function nextStart(text: string, start: number, end: number, overlap: number): number {
  if (overlap === 0) return skipSpace(text, end)
  const back = Math.max(start + 1, end - overlap)
  const space = text.slice(back, end).search(/\s/)
  const from = skipSpace(text, space < 0 ? end : back + space)
  return from > start ? from : end
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && /\s/.test(text[at] as string)) at++
  return at
}

function check(field: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return
  throw new InvalidOptionError(field, `must be a whole number, ${least} or more, not ${String(value)}`, 'Correct it.')
}
