import type { Weight } from './fold.js'

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
