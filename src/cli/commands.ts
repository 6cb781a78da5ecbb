import type { CommandDeclaration } from './command.js'
import { dataCommands } from './commands/data/declarations.js'
import { maintenanceCommands } from './commands/maintenance/declarations.js'
import { programCommands } from './commands/programs/declarations.js'
import { questionCommands } from './commands/questions/declarations.js'
import { storeCommands } from './commands/store/declarations.js'
import { threadCommands } from './commands/threads/declarations.js'

/** All commands, in the order of help. */
export const COMMANDS: readonly CommandDeclaration[] = [
  ...programCommands,
  ...threadCommands,
  ...questionCommands,
  ...storeCommands,
  ...maintenanceCommands,
  ...dataCommands,
]
