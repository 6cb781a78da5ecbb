// @ts-check

const WIDTH = 24
/** @type {Map<string, number>} when a line was last printed, where nothing can be painted over */
const printed = new Map()
const PLAIN_EVERY_MS = 10_000

/** A bar on a terminal; elsewhere a line now and then. @param {string} name @param {number} done @param {number} all @param {string} what */
export function showProgress(name, done, all, what) {
  const text = `${name}: ${done} of ${all} ${what}`
  if (process.stderr.isTTY) {
    const full = Math.round((WIDTH * done) / all)
    process.stderr.write(`\r${'█'.repeat(full)}${'░'.repeat(WIDTH - full)} ${text}\u001b[K`)
    return
  }
  const now = Date.now()
  if (done < all && now - (printed.get(name) ?? 0) < PLAIN_EVERY_MS) return
  if (done >= all && printed.get(name) === Number.POSITIVE_INFINITY) return
  printed.set(name, done >= all ? Number.POSITIVE_INFINITY : now)
  console.error(text)
}
