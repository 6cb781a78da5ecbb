import type { Command } from '../../command.js'
import { showKeys } from './report.js'

/** Shows which data keys the tenant has. */
export const run: Command = async (context) => {
  const hf = await context.open()
  await showKeys(context, await hf.keys.status())
}
