import { readFile } from 'node:fs/promises'
import { type AgentProgram, type FlowProgram, type GraphProgram, openHoldfast, type ReplayReport } from '../index.js'

/** Any program: an agent, a graph or a flow. */
// oxlint-disable-next-line typescript/no-explicit-any
type AnyProgram = AgentProgram | GraphProgram<any, any> | FlowProgram<any, any>

/**
 * Replays the last run of an exported thread (`holdfast export`, `hf.export`) with the current program, from its
 * records alone: no model, tool or other step is called, nothing is written, no network is needed. `status` is
 * 'identical' if the program would do the same again; otherwise `difference` says where it first differs.
 */
export async function replayFixture(
  file: string | URL,
  program: AnyProgram,
  options: { readonly branch?: string } = {},
): Promise<ReplayReport> {
  const text = await readFile(file, 'utf8')
  const hf = await openHoldfast('memory:', { telemetry: false })
  try {
    const { thread } = await hf.import(text)
    return await hf.thread(program as FlowProgram<unknown, unknown>, thread, options).replay()
  } finally {
    await hf.close()
  }
}
