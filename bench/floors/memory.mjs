// @ts-check

/** A Map. @returns {Promise<import('../backends.mjs').Floor>} */
export async function openMemoryFloor() {
  const entries = new Map()
  const states = new Map()
  return {
    write: (bytes) => entries.set(entries.size, bytes),
    putState: (name, json) => states.set(name, json),
    getState: (name) => JSON.parse(states.get(name)),
    close() {},
  }
}
