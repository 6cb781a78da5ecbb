import { push, remove, set, splice } from './ops.js'

/** What an entry does to the state of its log, one function each: `ops.set('total', 3)`. */
export const ops = { push, remove, set, splice } as const
