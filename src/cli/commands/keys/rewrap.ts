import type { Command } from '../../command.js'
import { changeKeys } from './report.js'

/** Wraps data keys under the current master key. Entries are not rewritten. */
export const run: Command = (context, _args, options) => changeKeys(context, options, (hf) => hf.keys.rewrap())
