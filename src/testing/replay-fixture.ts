import { readFile } from 'node:fs/promises'
import { type AgentProgram, type FlowProgram, type GraphProgram, openHoldfast, type ReplayReport } from '../index.js'

/** Any program: an agent, a graph or a flow. */
// oxlint-disable-next-line typescript/no-explicit-any
type AnyProgram = AgentProgram | GraphProgram<any, any> | FlowProgram<any, any>

/**
 * Goes through the last run of an exported thread (`holdfast export`, `hf.export`) with today's program, from its records
 * alone: no model, tool or other step is called, nothing is written, no network is needed. `status` is 'identical' where
 * the program would do the same again, otherwise `difference` says where it first goes another way.
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
