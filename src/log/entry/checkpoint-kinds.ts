/** Written by whoever holds or looks at the thread; nothing happened in the program. */
const NO_CHECKPOINTS: ReadonlySet<string> = new Set(['claim', 'resume', 'release', 'park', 'tag', 'adopt', 'retain'])

/** Whether an entry is one after which its program can continue: what history lists, and what a policy counts. */
export function isCheckpoint(kind: string): boolean {
  return !NO_CHECKPOINTS.has(kind)
}
