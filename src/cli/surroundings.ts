import type { Stream } from './screen/output.js'

/** Where a command line comes from, and where its answer goes. */
export interface Surroundings {
  /** What stands behind `holdfast`. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Who runs it; undefined where the system has no such numbers. */
  readonly uid: number | undefined
  readonly stdin: NodeJS.ReadStream
  readonly stdout: Stream
  readonly stderr: Stream
  /** From now on an interruption aborts the signal instead of ending the process. */
  readonly onInterrupt: () => AbortSignal
}
