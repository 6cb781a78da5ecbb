import { randomFillSync } from 'node:crypto'

const ID_BYTES = 12

/**
 * Generates random ids of 96 bits as 16 characters. Entropy is drawn in bulk, because one draw per id costs more than
 * the id.
 */
export function randomIds(): () => string {
  const pool = Buffer.alloc(ID_BYTES * 256)
  let used = pool.length
  return () => {
    if (used === pool.length) {
      randomFillSync(pool)
      used = 0
    }
    const id = pool.toString('base64url', used, used + ID_BYTES)
    used += ID_BYTES
    return id
  }
}
