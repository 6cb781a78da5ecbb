// @ts-check
import { openStore } from '../backends.mjs'
import { compare } from '../statistics.mjs'
import { makeTurns } from '../turns.mjs'
import { saveTurns, takeThread } from './session.mjs'

const TURNS = 1000

/** What a long session takes, as the log hands it to any driver, against its raw JSON. */
export async function measureSize() {
  const turns = makeTurns(5, TURNS)
  const { hf, driver } = await openStore('memory:')
  const claim = await takeThread(hf, 'session')
  await saveTurns(claim, turns)
  const { key, fold } = claim.log
  const raw = Buffer.byteLength(JSON.stringify(fold.state))
  const rows = await driver.headers(key, { limit: TURNS + 1 })
  const history = await claim.log.history({ limit: TURNS + 1 })
  const blobs = sum((await driver.listBlobs(key.tenant, { limit: 10_000 })).map(({ size }) => size))
  const headers = blobs + sum(rows.map(({ header }) => header.length))
  const stored = headers + sum(rows.map(({ size }) => size))
  const plain = headers + sum(history.map(({ header }) => header.size))
  await hf.close()
  const about = { backend: 'every backend', unit: /** @type {const} */ ('bytes') }
  /** @param {string} what @param {number} ours @param {number} floor @param {number} [atMost] */
  const line = (what, ours, floor, atMost) =>
    compare({ ...about, what, ...(atMost === undefined ? {} : { budget: { atMost } }) }, [{ ours, floor }])
  return [
    line(`stored for ${TURNS} turns / JSON of the state`, stored, raw, 1),
    line('the same without compression', plain, raw, 2.2),
    line('stored per turn / JSON of a turn', stored / TURNS, sum(turns.map(({ json }) => json)) / TURNS),
  ]
}

/**
 * What the same session takes on the disk when its store is closed, against the raw JSON of its state.
 * @param {import('../backends.mjs').Backend} backend
 */
export async function measureDisk(backend) {
  if (backend.diskBytes === undefined) return []
  const url = backend.url('size')
  const { hf } = await openStore(url)
  await hf.log('session')
  await hf.close()
  const empty = backend.diskBytes(url)
  const again = await openStore(url)
  const claim = await takeThread(again.hf, 'session')
  await saveTurns(claim, makeTurns(5, TURNS))
  const raw = Buffer.byteLength(JSON.stringify(claim.log.fold.state))
  await again.hf.close()
  const rounds = [{ ours: (backend.diskBytes(url) - empty) / TURNS, floor: raw / TURNS }]
  return [compare({ backend: backend.name, what: 'on the disk per turn / JSON of a turn', unit: 'bytes' }, rounds)]
}

/** @param {readonly number[]} numbers */
function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0)
}
