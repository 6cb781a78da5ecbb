import type { ChainBase } from '../../codec/header.js'
import type { Limits } from '../../codec/limits.js'
import { type BlobSink, encodeValue } from '../../codec/value.js'
import { isHoldfastError } from '../../core/errors.js'
import type { Drafted, EntryContext } from './entry-context.js'
import type { Applied, Fold, Weight } from './fold.js'

/** A short log needs no keyframes: reading this much from its start is quick. */
const SMALLEST_DISTANCE = 64 * 1024

/**
 * Whether the next entry should hold the whole fold again. Two rules, whichever comes first:
 *
 * - Reading may cost at most about twice the state: when values are replaced, the keyframe and the deltas after it
 *   outgrow what is alive.
 * - The distance is geometric: when values are only added, a keyframe is due once the deltas are three times the
 *   last one. Each is then four times the one before, so all of them together add a third to the data right
 *   before the next one is written, and four thirds right after.
 */
export function isKeyframeDue({ keyframeBytes, deltaBytes, liveBytes }: Weight): boolean {
  if (deltaBytes < SMALLEST_DISTANCE) return false
  return keyframeBytes + deltaBytes > 2 * liveBytes || deltaBytes > 3 * keyframeBytes
}

/** A keyframe to be written. */
export interface Keyframe {
  /** What the entry itself says. */
  readonly body: object
  readonly before: Fold
  readonly after: Applied
  /** For the first entry of a fork: the entry it continues. */
  readonly base: ChainBase | undefined
  /** Requested explicitly, and not only due. */
  readonly isAsked: boolean
}

/**
 * The body of a keyframe as JSON. Undefined if one that is merely due would exceed the limits: a state that has grown
 * too large to be written in one piece must not stop its thread from being claimed, answered or cut down.
 */
export function encodeKeyframe(
  { body, before, after, base, isAsked }: Keyframe,
  limits: Limits,
  sink: BlobSink,
): string | undefined {
  const { state, index } = after
  // The first entry may be pruned, so every keyframe of a fork says where it came from.
  const origin = base ?? before.origin ?? undefined
  const fold = { state, index, origin, stored: after.stored < 0 ? undefined : after.stored }
  try {
    return encodeValue({ ...body, fold }, limits, sink).json
  } catch (error) {
    if (isAsked || !isHoldfastError(error, 'too-large')) throw error
    return undefined
  }
}

/** Makes an entry a keyframe, unless that is only due and would exceed the limits. Its blobs are stored when this resolves. */
export function addWholeFold(
  { limits, shelf }: EntryContext,
  parts: Drafted,
  isAsked: boolean,
): undefined | Promise<undefined> {
  const { before, sealing, encoded, applied } = parts
  const whole = shelf.sink(true)
  const keyframe = { body: encoded.value as object, before, after: applied, base: sealing.base, isAsked }
  const json = encodeKeyframe(keyframe, limits, whole)
  if (json === undefined) return undefined
  parts.json = json
  parts.isKeyframe = true
  parts.holdsWholeFold = true
  parts.blobs = []
  if (whole.items.length === 0) return undefined
  return shelf.store(whole, parts.key).then((blobs): undefined => {
    parts.blobs = blobs
    return undefined
  })
}
