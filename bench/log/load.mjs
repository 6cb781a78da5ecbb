// @ts-check
import { openStore } from '../backends.mjs'
import { budgetOf } from '../budget.mjs'
import { alternate, compare, median, state } from '../statistics.mjs'

/** @typedef {import('holdfast').Claim} Claim */

const MIDDLE = 500

/**
 * The newest and a middle state of a long thread, read by a handle that knows nothing yet, against one raw JSON value
 * of the same state read and parsed.
 * @param {import('./suite.mjs').Bench} bench
 * @param {readonly Claim[]} long
 */
export async function measureLoad({ backend, hf, floor, scale, progress }, long) {
  const [claim] = long
  if (claim === undefined) throw new Error('There is no long thread to load.')
  const thread = claim.log.key.thread
  const log = await hf.log(thread)
  await floor.putState('newest', JSON.stringify(log.fold.state))
  await floor.putState('middle', JSON.stringify((await log.at(MIDDLE)).state))
  const newest = []
  const middle = []
  for (let round = 0; round <= scale.rounds; round++) {
    progress(`load, round ${round} of ${scale.rounds}`)
    const end = await alternate(
      scale.loads,
      () => hf.log(thread),
      () => floor.getState('newest'),
    )
    const half = await alternate(
      scale.loads,
      () => log.at(MIDDLE),
      () => floor.getState('middle'),
    )
    if (round === 0) continue
    newest.push({ ours: median(end.ours), floor: median(end.floor) })
    middle.push({ ours: median(half.ours), floor: median(half.floor) })
  }
  const about = { backend: backend.name, unit: /** @type {const} */ ('time') }
  const id = `load@${backend.id}`
  return [
    compare({ ...about, id, what: 'load newest of 1000 turns', ...budgetOf(id) }, newest),
    compare({ ...about, what: `load turn ${MIDDLE} of 1000` }, middle),
  ]
}

/**
 * What taking a long thread costs beyond reading it; and the whole of it from nothing, the store included.
 * @param {import('./suite.mjs').Bench} bench
 * @param {readonly Claim[]} long
 */
export async function measureResume({ backend, hf, scale, progress }, long) {
  const claim = /** @type {Claim} */ (long[0])
  await claim.release()
  const thread = claim.log.key.thread
  const overheads = []
  const wholes = []
  for (let round = 0; round < scale.rounds; round++) {
    progress(`resume, round ${round + 1} of ${scale.rounds}`)
    const taking = []
    for (let i = 0; i < scale.loads; i++) {
      // Read outside the clock: the difference of two long times would be all noise.
      const log = await hf.log(thread)
      const began = performance.now()
      const taken = await log.claim({ owner: 'bench', ms: 10_000 })
      taking.push(performance.now() - began)
      await taken.release()
    }
    overheads.push(median(taking))
    if (backend.name !== 'memory') wholes.push(await resumeFromNothing(backend.url('main'), thread))
  }
  const about = { backend: backend.name, unit: /** @type {const} */ ('time') }
  const id = `claim@${backend.id}`
  return [
    state({ ...about, id, what: 'resume beyond loading the state', budget: { atMost: 10 } }, overheads),
    ...(wholes.length > 0 ? [state({ ...about, what: 'open the store, load and claim' }, wholes)] : []),
  ]
}

/** @param {string} url @param {string} thread */
async function resumeFromNothing(url, thread) {
  const began = performance.now()
  const { hf } = await openStore(url)
  const claim = await (await hf.log(thread)).claim({ owner: 'bench', ms: 10_000 })
  const took = performance.now() - began
  await claim.release()
  await hf.close()
  return took
}
