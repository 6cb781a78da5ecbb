// @ts-check
import { backendAt, openStore } from '../backends.mjs'
import { openOfficial } from '../langgraph/savers.mjs'
import { makeOurs, runOurs } from './ours.mjs'
import { makeTheirs, runTheirs } from './theirs.mjs'

/** Who runs the agent: ours, or LangGraph's without a saver, with its saver, or with that and its DeltaChannel. */
/** @typedef {'ours' | 'bare' | 'saver' | 'delta'} Who */

/**
 * Methods `run` (the agent with so many tool calls on a thread of this name), `warm` (the same where nothing is kept)
 * and `close`.
 * @param {{ who: Who, address: import('../backends.mjs').Address }} options
 */
export function open({ who, address }) {
  return who === 'ours' ? openOurs(address) : openTheirs(who, address)
}

/** @param {import('../backends.mjs').Address} address */
async function openOurs(address) {
  const [{ hf }, { hf: memory }] = [await openStore(backendAt(address).url('agent')), await openStore('memory:')]
  return {
    run: (/** @type {string} */ thread, /** @type {number} */ calls) => runOurs(hf, makeOurs(calls), thread, calls),
    warm: (/** @type {string} */ thread, /** @type {number} */ calls) =>
      runOurs(memory, makeOurs(calls), thread, calls),
    async close() {
      await hf.close()
      await memory.close()
    },
  }
}

/** @param {Exclude<Who, 'ours'>} who @param {import('../backends.mjs').Address} address */
async function openTheirs(who, address) {
  const subject = who === 'bare' ? undefined : await openOfficial(backendAt(address), `agent_${who}`)
  const keeping = subject === undefined ? {} : { saver: subject.saver, delta: who === 'delta' }
  return {
    run: (/** @type {string} */ thread, /** @type {number} */ calls) =>
      runTheirs(makeTheirs(calls, keeping), thread, calls),
    warm: (/** @type {string} */ thread, /** @type {number} */ calls) => runTheirs(makeTheirs(calls), thread, calls),
    close: async () => subject?.close(),
  }
}
