import { AIMessage, type BaseMessage, HumanMessage } from '@langchain/core/messages'
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
import fc from 'fast-check'

const KINDS = ['plain', 'ask', 'askTwice', 'goto', 'spread', 'fail', 'sub', 'again'] as const

/** Nodes in a row: each goes on to one or two of those behind it, or to the end. */
export const graphSpec = fc.array(
  fc.record({ kind: fc.constantFrom(...KINDS), to: fc.array(fc.nat(3), { minLength: 1, maxLength: 2 }) }),
  { minLength: 1, maxLength: 4 },
)

export const operation = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant('invoke' as const), input: fc.nat(9) }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('resume' as const), value: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('resumeById' as const), value: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('stream' as const), input: fc.nat(9) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('replay' as const), at: fc.nat() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('update' as const),
      at: fc.option(fc.nat()),
      node: fc.option(fc.nat()),
      value: fc.nat(9),
      goesOn: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('updateInside' as const), value: fc.nat(9) }) },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('page' as const), at: fc.nat(), limit: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('restart' as const) }) },
)

export type GraphSpec = typeof graphSpec extends fc.Arbitrary<infer Spec> ? Spec : never
export type GraphOperation = typeof operation extends fc.Arbitrary<infer One> ? One : never

/** Ids of checkpoints and tasks, and those of interrupts. */
const IDS = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\b[0-9a-f]{32}\b/g

const list = Annotation<unknown[]>({ reducer: (a, b) => a.concat(b), default: () => [] })
const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  log: list,
  last: Annotation<unknown>(),
  seen: Annotation<Map<string, number>>({
    reducer: (a, b) => new Map([...a, ...b]),
    default: () => new Map(),
  }),
})
type Update = Partial<typeof State.State>

/** A graph by its spec. What only happens once happens once per graph, whatever saver it has. */
function makeGraph(spec: GraphSpec, checkpointer: BaseCheckpointSaver, failed: Set<string>) {
  const target = (i: number, to: number): string => (i + 1 + to < spec.length ? `n${i + 1 + to}` : END)
  const inner = new StateGraph(Annotation.Root({ log: list, secret: Annotation<number>() }))
    .addNode('one', () => ({ log: ['one'], secret: 1 }))
    .addNode('two', ({ secret }) => ({ log: [`two ${secret} ${interrupt('inside?')}`] }))
    .addEdge(START, 'one')
    .addEdge('one', 'two')
    .compile()
  // The names of nodes are not known to the types.
  const graph = new StateGraph(State) as unknown as {
    addNode(name: string, action: unknown, options?: object): void
    addEdge(from: string, to: string): void
    addConditionalEdges(from: string, route: (state: typeof State.State) => unknown, targets?: string[]): void
    compile(options: object): ReturnType<ReturnType<typeof typed>['compile']>
  }
  const say = (name: string, more: Update = {}): Update => ({
    log: [name],
    seen: new Map([[name, 1]]),
    messages: [new AIMessage({ id: `from-${name}`, content: name })],
    ...more,
  })
  let needsPart = false
  for (const [i, { kind, to }] of spec.entries()) {
    const name = `n${i}`
    const targets = [...new Set(to.map((one) => target(i, one)))]
    if (kind === 'sub') graph.addNode(name, inner)
    else if (kind === 'ask') graph.addNode(name, () => say(name, { last: interrupt({ from: name }) }))
    else if (kind === 'askTwice') {
      graph.addNode(name, () => say(name, { last: [interrupt(`${name} first`), interrupt(`${name} second`)] }))
    } else if (kind === 'fail') {
      graph.addNode(name, () => {
        if (failed.has(name)) return say(name)
        failed.add(name)
        throw new TypeError(`${name} failed`)
      })
    } else if (kind === 'goto') {
      graph.addNode(name, () => new Command({ goto: targets, update: say(name) }), { ends: targets })
      continue
    } else graph.addNode(name, () => say(name, { last: { [name]: [undefined, new Set([name]), { deep: null }] } }))
    if (kind === 'spread') {
      needsPart = true
      graph.addConditionalEdges(name, () => [0, 1].map((n) => new Send('part', { n, name })), ['part'])
    } else if (kind === 'again') {
      graph.addConditionalEdges(name, ({ log }) =>
        log.filter((one) => one === name).length % 3 === 0 ? targets : 'n0',
      )
    } else for (const one of targets) graph.addEdge(name, one)
  }
  if (needsPart) {
    graph.addNode('part', ({ n, name }: { n: number; name: string }) => ({
      log: [`part ${n} of ${name}${n === 1 ? ` ${interrupt('part?')}` : ''}`],
    }))
  }
  // LangGraph refuses nodes that nothing may lead to.
  graph.addConditionalEdges(
    START,
    () => 'n0',
    [...spec.keys()].map((i) => `n${i}`),
  )
  return graph.compile({ checkpointer })
}

const typed = () => new StateGraph(State).addNode('n0', () => ({})).addEdge(START, 'n0')

/**
 * What each operation on a graph led to, and all that is stored in the end. Without what is random or a matter of time:
 * ids become the order in which they are met.
 */
export async function play(
  spec: GraphSpec,
  operations: readonly GraphOperation[],
  openSaver: () => BaseCheckpointSaver,
  durability: 'sync' | 'async' | 'exit',
): Promise<string[]> {
  const failed = new Set<string>()
  let saver = openSaver()
  let graph = makeGraph(spec, saver, failed)
  const config = { configurable: { thread_id: 't' }, durability, recursionLimit: 12 }
  const history = async (options: object = {}): Promise<StateSnapshot[]> => {
    const snapshots: StateSnapshot[] = []
    for await (const snapshot of graph.getStateHistory({ configurable: { thread_id: 't' } }, options)) {
      snapshots.push(snapshot)
    }
    return snapshots
  }
  const pick = async (at: number): Promise<StateSnapshot | undefined> => {
    const all = await history()
    return all[at % Math.max(1, all.length)]
  }
  const input = (n: number) => ({ messages: [new HumanMessage({ id: `in-${n}`, content: `in ${n}` })], log: [n] })

  const perform = async (one: GraphOperation): Promise<unknown> => {
    switch (one.type) {
      case 'invoke':
        return graph.invoke(input(one.input), config)
      case 'resume':
        return graph.invoke(new Command({ resume: one.value }), config)
      case 'resumeById': {
        const { tasks } = await graph.getState(config)
        const open = tasks.flatMap(({ interrupts }) => interrupts.map(({ id }) => id as string))
        if (open.length === 0) return 'nothing open'
        return graph.invoke(new Command({ resume: Object.fromEntries(open.map((id) => [id, one.value])) }), config)
      }
      case 'stream': {
        const chunks: unknown[] = []
        const modes = ['values', 'updates'] as const
        for await (const chunk of await graph.stream(input(one.input), { ...config, streamMode: [...modes] })) {
          chunks.push(chunk)
        }
        return inAnyOrder(chunks)
      }
      case 'replay': {
        const past = await pick(one.at)
        return past ? graph.invoke(null, { ...config, ...past.config }) : 'no past'
      }
      case 'update': {
        const at = one.at === null ? undefined : await pick(one.at)
        const node = one.node === null ? undefined : `n${one.node % spec.length}`
        const made = await graph.updateState(
          at?.config ?? { configurable: { thread_id: 't' } },
          { log: [`edit ${one.value}`], last: one.value },
          node,
        )
        return one.goesOn ? graph.invoke(null, { ...config, ...made }) : made
      }
      case 'updateInside': {
        const { tasks } = await graph.getState(config, { subgraphs: true })
        const inside = tasks.map(({ state }) => state as StateSnapshot | undefined).find((state) => state?.config)
        if (inside === undefined) return 'nothing inside'
        return graph.updateState(inside.config, { secret: one.value })
      }
      case 'page': {
        const before = await pick(one.at)
        return history({ limit: one.limit, ...(before ? { before: before.config } : {}) })
      }
      case 'restart':
        saver = openSaver()
        graph = makeGraph(spec, saver, failed)
        return 'restarted'
    }
  }

  const told: unknown[] = []
  for (const one of operations) {
    // Ids of one millisecond are in no order.
    for (const from = Date.now(); Date.now() <= from + 1; ) await new Promise((resolve) => setTimeout(resolve, 1))
    told.push([one, await perform(one).catch(failure)])
  }
  // Where writes don't fit together, LangGraph can't even show the state.
  told.push(await graph.getState(config, { subgraphs: true }).catch(failure), await history().catch(failure))
  for await (const tuple of saver.list({ configurable: { thread_id: 't', checkpoint_ns: '' } })) {
    const { channel_values: values, channel_versions: versions } = tuple.checkpoint
    // What no step has written yet is made anew by the graph, stored or not.
    const written = Object.entries(values).filter(([channel]) => channel in versions)
    written.sort(([a], [b]) => (a < b ? -1 : 1))
    const { metadata, pendingWrites = [], parentConfig } = tuple
    const writes = inAnyOrder(pendingWrites)
    told.push({ written: Object.fromEntries(written), versions, metadata, writes, parentConfig })
  }
  return normalize(told)
}

/** Tasks that run side by side end in any order. Ids are random, and must not decide. */
function inAnyOrder(parts: readonly unknown[]): string[] {
  const nameless = (text: string): string => text.replace(IDS, '#')
  const texts = parts.map((part) => JSON.stringify(part, replaceOdd))
  return texts.sort((a, b) => (nameless(a) < nameless(b) ? -1 : nameless(a) > nameless(b) ? 1 : 0))
}

function failure(error: Error): string {
  return `${error.name}: ${error.message}`
}

function normalize(told: readonly unknown[]): string[] {
  const ids = new Map<string, number>()
  return told.map((one) =>
    JSON.stringify(one, replaceOdd).replace(IDS, (id) => {
      if (!ids.has(id)) ids.set(id, ids.size)
      return `#${ids.get(id)}`
    }),
  )
}

function replaceOdd(this: unknown, key: string, value: unknown): unknown {
  const raw = (this as Record<string, unknown>)[key]
  if (key === 'createdAt' || key === 'ts' || key === 'stack') return undefined
  if (key === 'configurable') {
    const { thread_id, checkpoint_ns, checkpoint_id } = raw as Record<string, unknown>
    return { thread_id, checkpoint_ns, checkpoint_id }
  }
  if (raw instanceof Set) return { set: [...raw] }
  if (raw instanceof Map) return { map: [...raw] }
  if (raw instanceof Error) return `${raw.name}: ${raw.message}`
  if (raw === undefined) return 'undefined'
  if (typeof raw === 'object' && raw !== null && 'getType' in raw) {
    const message = raw as BaseMessage
    return [message.getType(), message.id, message.content]
  }
  return value
}
