// @ts-check
import { openStore } from '../backends.mjs'
import { budgetOf } from '../budget.mjs'
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
  /** @param {string} id @param {string} what @param {number} ours @param {number} floor */
  const line = (id, what, ours, floor) => compare({ ...about, id, what, ...budgetOf(id) }, [{ ours, floor }])
  return [
    line('bytes.session', `stored for ${TURNS} turns / JSON of the state`, stored, raw),
    line('bytes.plain', 'the same without compression', plain, raw),
    line('bytes.turn', 'stored per turn / JSON of a turn', stored / TURNS, sum(turns.map(({ json }) => json)) / TURNS),
  ]
}

/**
 * What the same session takes on the disk when its store is closed, against the raw JSON of its state; and one of plain
 * prose, a question and an answer each turn.
 * @param {import('../backends.mjs').Backend} backend
 */
export async function measureDisk(backend) {
  const turns = makeTurns(5, TURNS)
  const whole = await diskOf(backend, 'size', turns)
  const prose = await diskOf(backend, 'prose', turns.map(plainProse))
  if (whole === undefined || prose === undefined) return []
  const about = { backend: backend.name, unit: /** @type {const} */ ('bytes') }
  const id = backend.id === 'sqlite' ? 'bytes.prose' : `bytes.prose@${backend.id}`
  return [
    compare({ ...about, what: 'on the disk per turn / JSON of a turn' }, [whole]),
    compare({ ...about, id, what: 'the same in plain prose', ...budgetOf(id) }, [prose]),
  ]
}

/** @param {import('../turns.mjs').Turn} turn @returns {import('../turns.mjs').Turn} */
function plainProse({ ops, json }) {
  const [, , messages] = /** @type {['push', unknown, any[]]} */ (/** @type {unknown} */ (ops[0]))
  const said = [messages[0], messages.at(-1)].map(({ role, content }) => ({ role, content }))
  return { ops: [['push', ['messages'], said]], json }
}

/** Bytes per turn. @param {import('../backends.mjs').Backend} backend @param {string} part @param {readonly import('../turns.mjs').Turn[]} turns */
async function diskOf({ diskBytes, url: urlOf }, part, turns) {
  if (diskBytes === undefined) return undefined
  const url = urlOf(part)
  const { hf } = await openStore(url)
  await hf.log('session')
  await hf.close()
  const empty = diskBytes(url)
  const again = await openStore(url)
  const claim = await takeThread(again.hf, 'session')
  await saveTurns(claim, turns)
  const raw = Buffer.byteLength(JSON.stringify(claim.log.fold.state))
  await again.hf.close()
  return { ours: (diskBytes(url) - empty) / turns.length, floor: raw / turns.length }
}

/** @param {readonly number[]} numbers */
function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0)
}
