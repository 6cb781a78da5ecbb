import { InvalidIdError } from '../../core/errors.js'
import { type BranchId, parseBranchId } from '../../core/ids.js'

/**
 * Names one entry: its branch, its seq and the start of its hash, so that an id from a different history is recognized.
 */
export interface CheckpointRef {
  readonly branch: BranchId
  readonly seq: number
  readonly hashStart: string
}

const HASH_START = 12

export function formatCheckpointId(branch: BranchId, seq: number, hash: string): string {
  return `${encodeURIComponent(branch)}~${seq}~${hash.slice(0, HASH_START)}`
}

export function parseCheckpointId(id: unknown): CheckpointRef {
  const match = typeof id === 'string' ? /^([^~]+|.*~.*)~(\d{1,15})~([0-9a-f]{12})$/.exec(id) : null
  if (!match) {
    throw new InvalidIdError(
      'checkpoint id',
      `"${String(id).slice(0, 80)}" is malformed`,
      'Use an id as history lists it.',
    )
  }
  return {
    branch: parseBranchId(decodeBranch(match[1] as string)),
    seq: Number(match[2]),
    hashStart: match[3] as string,
  }
}

function decodeBranch(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Written by whoever holds or looks at the thread; nothing happened in the program. */
const NO_CHECKPOINTS: ReadonlySet<string> = new Set(['claim', 'resume', 'release', 'park', 'tag', 'adopt', 'retain'])

/** Whether an entry is one after which its program can continue: what history lists, and what a policy counts. */
export function isCheckpoint(kind: string): boolean {
  return !NO_CHECKPOINTS.has(kind)
}
