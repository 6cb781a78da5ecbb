import type { Head } from '../contract.js'

/** Whether a log may lack entries that were acknowledged, as a head tells it. */
export type Standing = Pick<Head, 'generation' | 'loss'>

export function standingOf({ generation, loss }: Head): Standing {
  return { ...(generation === undefined ? {} : { generation }), ...(loss ? { loss } : {}) }
}

export function withoutLoss({ generation }: Standing): Standing {
  return generation === undefined ? {} : { generation }
}
