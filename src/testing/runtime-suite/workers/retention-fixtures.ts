import { append, END, graph, type Holdfast, START } from '../../../index.js'
import { named } from '../runtime-context.js'

export const talk = graph({ ...named('talk'), state: { said: append<string>() } })
  .node('reply', ({ said }) => ({ said: `reply ${said.length}` }))
  .edge(START, 'reply')
  .edge('reply', END)

export async function names(hf: Holdfast): Promise<readonly string[]> {
  const { threads } = await hf.threads({ limit: 1000 })
  return threads.map(({ thread, branch }) => `${String(thread)} ${branch}`).sort()
}
