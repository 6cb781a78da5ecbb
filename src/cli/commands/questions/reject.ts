import { type Command } from '../../command.js'
import { decide } from './decide.js'

/** Says no. */
export const run: Command = (context, args, options) => decide(context, args, options, false)
