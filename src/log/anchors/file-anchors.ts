import { open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CorruptError, InvalidOptionError } from '../../core/errors.js'
import { writeNewFile } from '../../core/write-new-file.js'
import { type Anchor, type Anchors, anchorName, isAnchor } from './anchors.js'

/** A file is rewritten when it holds this many lines, and several times as many as things it is about. */
const MANY_LINES = 10_000
const SURPLUS = 4

/**
 * Keeps anchors in a file, one line of JSON each. Put it where someone who can write to the store can't: on another
 * machine, or in a folder of another user. Each process writes to its own file; `holdfast verify --anchors` takes
 * several.
 */
export function fileAnchors(path: string, options: { readonly everyMs?: number } = {}): Anchors {
  if (typeof path !== 'string' || path === '') {
    throw new InvalidOptionError('path', 'is not the name of a file', "Pass a path such as '/elsewhere/anchors.jsonl'.")
  }
  let surplus: readonly Anchor[] | undefined
  return {
    ...options,
    async read() {
      const { anchors, lines } = await readAnchors(path)
      const newest = new Map<string, Anchor>()
      for (const anchor of anchors) {
        const name = anchorName(anchor)
        // Behind what it replaces: what was erased and made again was made after it was erased.
        newest.delete(name)
        newest.set(name, anchor)
      }
      const kept = [...newest.values()]
      // Only by who also writes: a reader leaves the file as it is.
      surplus = lines > MANY_LINES && lines > SURPLUS * kept.length ? kept : undefined
      return kept
    },
    async write(anchors) {
      if (surplus !== undefined) await rewrite(path, surplus)
      surplus = undefined
      await append(path, anchors)
    },
  }
}

async function readAnchors(path: string): Promise<{ readonly anchors: readonly Anchor[]; readonly lines: number }> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const lines = text.split('\n')
  // A crash while writing leaves half a line at the end, whose append was never reported as anchored.
  const last = lines.pop()
  const anchors = lines.filter((line) => line !== '').map((line, i) => parseLine(path, line, i + 1))
  if (last !== undefined && last !== '') {
    const whole = tryParse(last)
    if (isAnchor(whole)) return { anchors: [...anchors, whole], lines: lines.length + 1 }
  }
  return { anchors, lines: lines.length }
}

function parseLine(path: string, line: string, number: number): Anchor {
  const anchor = tryParse(line)
  if (isAnchor(anchor)) return anchor
  const remedy = 'Restore the file. Without it, nothing says what the store held.'
  throw new CorruptError(`Line ${number} of ${path} is not an anchor.`, { path, line: number }, undefined, remedy)
}

function tryParse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

async function append(path: string, anchors: readonly Anchor[]): Promise<void> {
  const file = await open(path, 'a+', 0o600)
  try {
    const { size } = await file.stat()
    const end = size === 0 ? 0x0a : (await file.read(Buffer.alloc(1), 0, 1, size - 1)).buffer[0]
    // Half a line that a crash left: what it would have said was never reported as anchored.
    if (end !== 0x0a) await file.truncate((await readFile(path)).lastIndexOf(0x0a) + 1)
    await file.appendFile(encode(anchors))
    await file.sync()
  } finally {
    await file.close()
  }
}

// Beside it and then in its place: a crash leaves the old one or the new one.
async function rewrite(path: string, anchors: Iterable<Anchor>): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`
  try {
    await writeNewFile(temporary, encode([...anchors]))
    await rename(temporary, path)
    const folder = await open(dirname(path), 'r')
    await folder.sync().finally(() => folder.close())
  } catch {
    // A longer file is no worse.
    await rm(temporary, { force: true })
  }
}

function encode(anchors: readonly Anchor[]): string {
  return anchors.map((anchor) => `${JSON.stringify(anchor)}\n`).join('')
}
