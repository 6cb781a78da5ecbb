import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** Every Markdown page that people read. docs/api is made from the types and has no examples. */
export function pages(): string[] {
  const listed = readdirSync(join(root, 'docs'), { recursive: true }) as string[]
  return [
    'README.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    'SECURITY.md',
    ...listed
      .map((name) => join('docs', name))
      .filter((name) => name.endsWith('.md'))
      .sort(),
  ]
}

export function readPage(page: string): string {
  return readFileSync(join(root, page), 'utf8')
}

/** A TypeScript block of a page, and what the comments before it say. */
export interface Block {
  readonly page: string
  /** Of the first line of code, from 1. */
  readonly line: number
  readonly code: string
  /** `<!-- runnable -->`: run as a program of its own. */
  readonly runnable: boolean
  /** `<!-- wrong -->`: shows a mistake, so the compiler must find one. */
  readonly wrong: boolean
  /** What the reader has to imagine: `<!-- prelude … -->` of the page and `<!-- given … -->` of the block. */
  readonly given: string
}

const MARKS = /<!--\s*(runnable|wrong|prelude|given)\b([\s\S]*?)-->/g
// A comment ends at its first `-->`: one that reached on to a later one would hide the blocks in between.
const BLOCK = /((?:^<!--(?:(?!-->)[\s\S])*-->\s*)*)^```ts\n([\s\S]*?)^```$/gm

export function blocksOf(page: string, text = readPage(page)): Block[] {
  const prelude = [...text.matchAll(MARKS)].filter(([, mark]) => mark === 'prelude').map(([, , code]) => code)
  return [...text.matchAll(BLOCK)].map((match) => {
    const [, before = '', code = ''] = match
    const marks = [...before.matchAll(MARKS)].map(([, mark, rest]) => ({ mark, rest }))
    const given = marks.filter(({ mark }) => mark === 'given').map(({ rest }) => rest)
    const start = match.index + match[0].indexOf('```ts\n') + '```ts\n'.length
    // A block that imports is whole by itself, but for what is said of it alone.
    const whole = /^import /m.test(code)
    return {
      page,
      line: text.slice(0, start).split('\n').length,
      code,
      runnable: marks.some(({ mark }) => mark === 'runnable'),
      wrong: marks.some(({ mark }) => mark === 'wrong'),
      given: [...(whole ? [] : prelude), ...given].join('\n').trim(),
    }
  })
}
