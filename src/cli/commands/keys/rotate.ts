import type { Command } from '../../command.js'
import { changeKeys } from './report.js'

/** Makes a new data key. Everything older stays readable. */
export const run: Command = (context, _args, options) => changeKeys(context, options, (hf) => hf.keys.rotate())
