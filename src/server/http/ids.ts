import type { ThreadIdInput } from '../../index.js'
import { decodeParts, parseThreadId, threadIdInput, type ThreadId } from '../../core/ids.js'
import { HttpProblem } from './problem.js'

/** What a path can't hold without some proxy on the way reading another path. */
const UNSAFE = /[/\\]|^\.{1,2}$/

/**
 * A thread's id as a path holds it: a plain id as it is, `{session=s,user=u}` for one of named parts, and behind a `~` the
 * base64url of either, for ids that a path can't hold.
 */
export function readThreadId(text: string): ThreadIdInput {
  if (text.startsWith('~')) return fromStored(fromBase64(text.slice(1)))
  if (UNSAFE.test(text)) {
    throw new HttpProblem(
      400,
      'invalid-id',
      "A thread id in a path can't hold / or \\, and can't be a single or double dot.",
      {
        remedy: 'Send ~ and the base64url of the id, as `holdfast/client` does.',
        fields: { field: 'thread' },
      },
    )
  }
  return fromStored(text)
}

/** The id in the form that `readThreadId` reads back. */
export function writeThreadId(id: ThreadIdInput): string {
  const stored = parseThreadId(id)
  const isPlain = /^[\w{}=,.@:+ -]*$/.test(stored) && !UNSAFE.test(stored)
  return isPlain ? stored : `~${Buffer.from(stored).toString('base64url')}`
}

/** A branch, a tag, a pause or an item's key from a path. */
export function readName(text: string, field: string): string {
  if (text.startsWith('~')) return fromBase64(text.slice(1))
  if (!UNSAFE.test(text)) return text
  throw new HttpProblem(
    400,
    'invalid-id',
    `The ${field} in a path can't hold / or \\, and can't be a single or double dot.`,
    {
      remedy: 'Send ~ and the base64url of it, as `holdfast/client` does.',
      fields: { field },
    },
  )
}

/** Parts such as `user=u,team=t`, as the stored form has them inside its braces. */
export function readScope(text: string): Readonly<Record<string, string>> {
  const parts = text.startsWith('{') ? text : `{${text}}`
  if (!/^\{[^={},]+=[^={},]+(,[^={},]+=[^={},]+)*\}$/.test(parts)) {
    throw new HttpProblem(
      400,
      'invalid-id',
      `The scope must be named parts such as user=user-42, not "${text.slice(0, 100)}".`,
      {
        remedy: 'Escape , = % { } inside of a part as %2c %3d %25 %7b %7d.',
        fields: { field: 'scope' },
      },
    )
  }
  return decodeParts(parts)
}

function fromStored(stored: string): ThreadIdInput {
  if (!stored.startsWith('{')) {
    const id = threadIdInput(stored as ThreadId)
    parseThreadId(id)
    return id
  }
  const id = readScope(stored)
  parseThreadId(id)
  return id
}

function fromBase64(text: string): string {
  const bytes = Buffer.from(text, 'base64url')
  const id = bytes.toString('utf8')
  if (bytes.length > 0 && bytes.toString('base64url') === text && Buffer.from(id).equals(bytes)) return id
  throw new HttpProblem(400, 'invalid-id', 'What follows ~ must be base64url of UTF-8.', {
    remedy: 'Encode the id with base64url, without padding.',
  })
}
