import { type Command } from '../../command.js'
import { decide } from './decide.js'

/** Says yes to an approval, to a gate of a node, or to an effect on a fork. */
export const run: Command = (context, args, options) => decide(context, args, options, true)
