import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import {
  Annotation,
  type BaseCheckpointSaver,
  Command,
  END,
  interrupt,
  MessagesAnnotation,
  Send,
  START,
  type StateSnapshot,
  StateGraph,
} from '@langchain/langgraph'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { z } from 'zod'

type Saver = BaseCheckpointSaver
type Durability = 'sync' | 'async' | 'exit'

/** Answers by what it is shown: asks for the weather of each city that is named, then tells what it was told. */
class ScriptedModel extends BaseChatModel {
  constructor() {
    super({})
  }

  _llmType(): string {
    return 'scripted'
  }

  override bindTools(): this {
    return this
  }

  async _generate(messages: BaseMessage[]) {
    const last = messages.at(-1) as BaseMessage
    const cities = last instanceof HumanMessage ? (String(last.content).match(/Paris|Oslo/g) ?? []) : []
    const told = messages.filter((message) => message instanceof ToolMessage).length
    const message =
      cities.length > 0
        ? new AIMessage({
            content: '',
            tool_calls: cities.map((city) => ({ id: `${messages.length}-${city}`, name: 'weather', args: { city } })),
          })
        : new AIMessage(`${messages.length} messages, ${told} tool results, last: ${String(last.content)}`)
    return { generations: [{ message, text: String(message.content) }] }
  }
}

const weather = tool(({ city }) => `${city}: sunny`, {
  name: 'weather',
  description: 'The weather of a city.',
  schema: z.object({ city: z.string() }),
})

/** A prebuilt agent over two turns, then asked again from the middle of the first. */
export async function agentWithTools(checkpointer: Saver, durability: Durability): Promise<unknown> {
  const agent = createReactAgent({ llm: new ScriptedModel(), tools: [weather], checkpointer })
  const config = { configurable: { thread_id: 'agent' }, durability }
  const ask = (text: string, where: object = config) => agent.invoke({ messages: [new HumanMessage(text)] }, where)
  const first = await ask('Compare Paris and Oslo')
  const second = await ask('And Oslo alone?')
  const history = await gather(agent.getStateHistory(config))
  const middle = history.find(({ metadata }) => metadata?.step === 1) ?? history.at(-1)
  const forked = await ask('Paris instead', { ...(middle as StateSnapshot).config, durability })
  return {
    first: texts(first.messages),
    second: texts(second.messages),
    forked: texts(forked.messages),
    history: describe(await gather(agent.getStateHistory(config))),
  }
}

/** An agent inside a graph, whose tool asks a human; what it remembers is edited, and it is asked again from the past. */
export async function agentWithApproval(checkpointer: Saver, durability: Durability): Promise<unknown> {
  const executed: string[] = []
  const refund = tool(
    ({ city }) => {
      const answer = interrupt({ approve: city }) as string
      executed.push(`${city} ${answer}`)
      return `${city}: ${answer}`
    },
    { name: 'weather', description: 'Needs approval.', schema: z.object({ city: z.string() }) },
  )
  const agent = createReactAgent({ llm: new ScriptedModel(), tools: [refund] })
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('greet', () => ({ messages: [new AIMessage({ id: 'greeting', content: 'hello' })] }))
    .addNode('agent', agent)
    .addEdge(START, 'agent')
    .addEdge('agent', 'greet')
    .compile({ checkpointer })
  const config = { configurable: { thread_id: 'approval' }, durability }
  const paused = await graph.invoke({ messages: [new HumanMessage('Refund Paris')] }, config)
  const open = describe([await graph.getState(config, { subgraphs: true })])
  const resumed = await graph.invoke(new Command({ resume: 'granted' }), config)
  await graph.updateState(config, { messages: [new AIMessage({ id: 'greeting', content: 'edited' })] }, 'greet')
  const next = await graph.invoke({ messages: [new HumanMessage('thanks')] }, config)
  const history = await gather(graph.getStateHistory(config))
  const past = history.find(({ next: nodes }) => nodes.includes('agent')) as StateSnapshot
  const again = await graph.invoke(null, { ...past.config, durability })
  return {
    paused: plain(paused),
    open,
    resumed: texts(resumed.messages),
    next: texts(next.messages),
    again: texts(again.messages),
    executed,
    history: describe(await gather(graph.getStateHistory(config))),
  }
}

/** Two nodes side by side, one of which asks a human, twice; then the answer is changed in the past. */
export async function interrupts(checkpointer: Saver, durability: Durability): Promise<unknown> {
  let sideRuns = 0
  const State = Annotation.Root({
    log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
    answer: Annotation<string>(),
  })
  const graph = new StateGraph(State)
    .addNode('side', () => ({ log: [`side ${++sideRuns}`] }))
    .addNode('ask', () => {
      const name = interrupt({ question: 'name?' }) as string
      const age = interrupt({ question: 'age?' }) as number
      return { log: [`asked ${name} ${age}`], answer: name }
    })
    .addNode('end', ({ answer }) => ({ log: [`end ${answer}`] }))
    .addEdge(START, 'side')
    .addEdge(START, 'ask')
    .addEdge('side', 'end')
    .addEdge('ask', 'end')
    .addEdge('end', END)
    .compile({ checkpointer })
  const config = { configurable: { thread_id: 'interrupts' }, durability }
  const outcomes: unknown[] = []
  outcomes.push(await graph.invoke({ log: ['start'] }, config))
  outcomes.push(await graph.invoke(new Command({ resume: 'Ann' }), config))
  const paused = describe([await graph.getState(config)])
  outcomes.push(await graph.invoke(new Command({ resume: 42 }), config))
  // In the past: another answer, written over the state, and what follows from it.
  const history = await gather(graph.getStateHistory(config))
  const before = history.find(({ next }) => next.includes('end'))
  let edited: unknown
  if (before) {
    const fork = await graph.updateState(before.config, { answer: 'Bob', log: ['edited'] }, 'ask')
    edited = await graph.invoke(null, { ...fork, durability })
    outcomes.push(await graph.invoke(null, { ...before.config, durability }))
  }
  outcomes.push(await graph.updateState(config, { log: ['note'] }, 'end').then(() => 'updated'))
  const end = await graph.getState(config)
  return {
    outcomes: plain(outcomes),
    paused,
    edited,
    sideRuns,
    end: end.values,
    history: describe(await gather(graph.getStateHistory(config))),
  }
}

/** A subgraph that pauses inside a graph, with what it keeps for itself. */
export async function subgraphs(checkpointer: Saver, durability: Durability): Promise<unknown> {
  const Inner = Annotation.Root({
    shared: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
    secret: Annotation<Map<string, number>>(),
  })
  const inner = new StateGraph(Inner)
    .addNode('one', () => ({ shared: ['inner one'], secret: new Map([['k', 1]]) }))
    .addNode('two', ({ secret }) => ({ shared: [`inner two ${secret.get('k')} ${interrupt('go?')}`] }))
    .addEdge(START, 'one')
    .addEdge('one', 'two')
    .compile()
  const Outer = Annotation.Root({ shared: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) })
  const outer = new StateGraph(Outer)
    .addNode('before', () => ({ shared: ['before'] }))
    .addNode('inner', inner)
    .addNode('after', () => ({ shared: ['after'] }))
    .addEdge(START, 'before')
    .addEdge('before', 'inner')
    .addEdge('inner', 'after')
    .compile({ checkpointer })
  const config = { configurable: { thread_id: 'subgraphs' }, durability }
  const first = await outer.invoke({ shared: ['in'] }, config)
  const state = await outer.getState(config, { subgraphs: true })
  const task = state.tasks.find(({ name }) => name === 'inner')
  const insideState = task?.state as StateSnapshot | undefined
  const inside = insideState && describe([insideState])
  let edited: unknown
  if (insideState?.config) {
    await outer.updateState(insideState.config, { secret: new Map([['k', 2]]) })
    edited = 'edited'
  }
  const second = await outer.invoke(new Command({ resume: 'yes' }), config)
  return {
    first: plain(first),
    inside,
    edited,
    second: plain(second),
    history: describe(await gather(outer.getStateHistory(config))),
  }
}

/** Work that fans out, in which one part fails at first: what the others did is not done again. */
export async function fanOut(checkpointer: Saver, durability: Durability): Promise<unknown> {
  const runs: Record<string, number> = {}
  const State = Annotation.Root({
    ...MessagesAnnotation.spec,
    done: Annotation<string[]>({ reducer: (a, b) => a.concat(b).sort(), default: () => [] }),
  })
  const graph = new StateGraph(State)
    .addNode('plan', () => ({ messages: [new AIMessage({ id: 'plan', content: 'three parts' })] }))
    .addNode('part', (input: unknown) => {
      const { name } = input as { name: string }
      runs[name] = (runs[name] ?? 0) + 1
      if (name === 'b' && runs[name] === 1) throw new TypeError('part b failed')
      return { done: [name] }
    })
    .addEdge(START, 'plan')
    .addConditionalEdges('plan', () => ['a', 'b', 'c'].map((name) => new Send('part', { name })), ['part'])
    .compile({ checkpointer })
  const config = { configurable: { thread_id: 'fan-out' }, durability }
  const failure = await graph.invoke({ messages: [] }, config).then(
    () => 'none',
    (error: Error) => `${error.name}: ${error.message}`,
  )
  const failed = describe([await graph.getState(config)])
  const end = await graph.invoke(null, config)
  return { failure, failed, done: end.done, runs, history: describe(await gather(graph.getStateHistory(config))) }
}

/** What was sent out and waits for a human is called off by an update, and must not run after all. */
export async function calledOff(checkpointer: Saver, durability: Durability): Promise<unknown> {
  const State = Annotation.Root({
    log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
    // Never written again: each checkpoint takes it from its parent.
    notes: Annotation<{ deep: string[] }>(),
  })
  const graph = new StateGraph(State)
    .addNode('plan', () => ({ log: ['plan'] }))
    .addNode('stop', () => ({ log: ['stop'] }))
    .addNode('part', (input: unknown) => ({ log: [`part ${(input as { n: number }).n} ${interrupt('go?')}`] }))
    .addConditionalEdges(START, () => 'plan', ['plan', 'stop'])
    .addConditionalEdges('plan', () => [1, 2].map((n) => new Send('part', { n })), ['part'])
    .compile({ checkpointer })
  const config = { configurable: { thread_id: 'called-off' }, durability }
  const paused = await graph.invoke({ log: ['in'], notes: { deep: ['note'] } }, config)
  await graph.updateState(config, { log: ['called off'] }, 'stop')
  const state = describe([await graph.getState(config)])
  const next = await graph.invoke(null, config)
  return { paused: plain(paused), state, next, history: describe(await gather(graph.getStateHistory(config))) }
}

async function gather<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

function texts(messages: BaseMessage[]): string[] {
  return messages.map((message) => `${message.getType()}: ${String(message.content)}`)
}

/** Snapshots without what is random: ids become places in the list. */
function describe(history: readonly StateSnapshot[]): unknown {
  const ids = history.map(({ config }) => config.configurable?.['checkpoint_id'] as string)
  const place = (id: unknown): unknown => (id === undefined ? undefined : ids.indexOf(id as string))
  return history.map(({ values, next, metadata, tasks, parentConfig }) => ({
    values: plain(values),
    next,
    source: metadata?.source,
    step: metadata?.step,
    parent: place(parentConfig?.configurable?.['checkpoint_id']),
    tasks: tasks.map(({ name, interrupts: open, error, result }) => ({
      name,
      open: open?.map(({ value }) => value as unknown),
      error: error === undefined ? undefined : String((error as Error).message ?? error),
      result: plain(result),
    })),
  }))
}

function plain(value: unknown, key?: string): unknown {
  // The ids of interrupts follow from those of checkpoints.
  if (key === '__interrupt__') return (value as { value: unknown }[]).map((open) => plain(open.value))
  if (Array.isArray(value)) return value.map((item) => plain(item))
  if (value instanceof Map) return { map: [...value] }
  if (typeof value !== 'object' || value === null) return value
  if ('getType' in value) return texts([value as BaseMessage])[0]
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plain(part, name)]))
}
