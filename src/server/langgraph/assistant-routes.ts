import { createHash } from 'node:crypto'
import { jsonSchemaOf } from '../../json-schema/schema-checker.js'
import type { ServerCore } from '../core.js'
import { HttpProblem } from '../http/problem.js'
import type { Call, Route } from '../http/route.js'
import type { ServerProgram } from '../options.js'
import { hostedOf } from './graphs/hosted-graph.js'

const ANY = { type: 'object' } as const
const SEARCH = {
  type: 'object',
  properties: {
    graph_id: { type: 'string' },
    name: { type: 'string' },
    limit: { type: 'integer', minimum: 1, maximum: 1000 },
    offset: { type: 'integer', minimum: 0 },
  },
} as const
const answer = { schema: ANY }
/** Programs have no time of their own; clients want one. */
const SINCE = new Date(0).toISOString()

/** One assistant for each program. */
export const assistantRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/ok',
    name: 'lgOk',
    summary: 'Whether the server answers',
    role: 'none',
    answer,
    handle: async () => ({ ok: true }),
  },
  {
    method: 'GET',
    path: '/info',
    name: 'lgInfo',
    summary: 'What the server offers',
    role: 'none',
    answer,
    handle: async () => ({ version: '0.1.0', flags: { assistants: true, crons: false, langsmith: false } }),
  },
  {
    method: 'POST',
    path: '/assistants/search',
    name: 'lgSearchAssistants',
    summary: 'The programs, as assistants',
    role: 'read',
    body: SEARCH,
    answer,
    async handle({ core, body }) {
      const { limit = 10, offset = 0 } = body as { readonly limit?: number; readonly offset?: number }
      return found(core, body).slice(offset, offset + limit)
    },
  },
  {
    method: 'POST',
    path: '/assistants/count',
    name: 'lgCountAssistants',
    summary: 'How many programs there are',
    role: 'read',
    body: SEARCH,
    answer,
    handle: async ({ core, body }) => found(core, body).length,
  },
  {
    method: 'GET',
    path: '/assistants/:assistant',
    name: 'lgGetAssistant',
    summary: 'One program, as an assistant',
    role: 'read',
    answer,
    handle: async (call) => describe(programOf(call)),
  },
  {
    method: 'GET',
    path: '/assistants/:assistant/graph',
    name: 'lgGetGraph',
    summary: 'Nodes of a program',
    role: 'read',
    query: { xray: { type: 'string' } },
    answer,
    async handle(call) {
      const program = programOf(call)
      const hosted = hostedOf(program)
      if (hosted !== undefined) return hosted.draw(readXray(call.query['xray'] as string | undefined))
      const { plan } = program
      const names = plan.kind === 'graph' ? [...plan.nodes.keys()] : [plan.name]
      const nodes = ['__start__', ...names, '__end__'].map((id) => ({
        id,
        type: 'runnable',
        data: { id: ['holdfast'], name: id },
      }))
      const [first = plan.name] = names
      return {
        nodes,
        edges: [
          { source: '__start__', target: first },
          { source: names.at(-1) ?? first, target: '__end__' },
        ],
      }
    },
  },
  {
    method: 'GET',
    path: '/assistants/:assistant/schemas',
    name: 'lgGetSchemas',
    summary: 'What a program takes',
    role: 'read',
    answer,
    async handle(call) {
      const program = programOf(call)
      const { plan } = program
      const hosted = hostedOf(program)
      if (hosted !== undefined) return graphSchemas(plan.name, hosted.keys())
      const messages = { type: 'object', properties: { messages: { type: 'array', items: { type: 'object' } } } }
      const isAgent = plan.kind === 'graph' && plan.role === 'agent'
      const made = plan.inputSchema && (await jsonSchemaOf(plan.inputSchema).catch(() => undefined))
      const input = isAgent ? messages : (made ?? { type: 'object' })
      return {
        graph_id: plan.name,
        input_schema: input,
        output_schema: isAgent ? messages : { type: 'object' },
        state_schema: isAgent ? messages : { type: 'object' },
        config_schema: { type: 'object' },
        context_schema: { type: 'object' },
      }
    },
  },
  {
    method: 'GET',
    path: '/assistants/:assistant/subgraphs',
    name: 'lgGetSubgraphs',
    summary: 'Subgraphs of a graph of LangGraph; those of other programs are not shown apart',
    role: 'read',
    query: { recurse: { type: 'string' } },
    answer,
    async handle(call) {
      return subgraphsOf(call)
    },
  },
  {
    method: 'GET',
    path: '/assistants/:assistant/subgraphs/:namespace',
    name: 'lgGetSubgraph',
    summary: 'Subgraphs at one place of a graph of LangGraph',
    role: 'read',
    query: { recurse: { type: 'string' } },
    answer,
    async handle(call) {
      return subgraphsOf(call)
    },
  },
]

async function subgraphsOf(call: Call): Promise<object> {
  const program = programOf(call)
  const found = (await hostedOf(program)?.subgraphs(call.params['namespace'], call.query['recurse'] === 'true')) ?? {}
  return Object.fromEntries(Object.entries(found).map(([name, keys]) => [name, graphSchemas(program.plan.name, keys)]))
}

/** What a graph's state holds. Of which types is known to its code alone. */
function graphSchemas(graph: string, keys: readonly string[]) {
  const schema = { type: 'object', properties: Object.fromEntries(keys.map((key) => [key, {}])) }
  const any = { type: 'object' }
  return {
    graph_id: graph,
    input_schema: schema,
    output_schema: schema,
    state_schema: schema,
    config_schema: any,
    context_schema: any,
  }
}

function readXray(given: string | undefined): boolean | number {
  const depth = Number(given)
  return given !== undefined && Number.isSafeInteger(depth) && depth > 0 ? depth : given === 'true'
}

/** The id of a program's assistant: always the same, and a UUID, as clients expect. */
export function assistantId(program: string): string {
  const hash = createHash('sha256').update(`holdfast:${program}`).digest('hex')
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-5${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`
}

/** The program that an assistant's id, or its own name, stands for. */
export function programNamed(core: ServerCore, id: string): ServerProgram {
  for (const program of core.programs.values()) {
    if (program.plan.name === id || assistantId(program.plan.name) === id) return program
  }
  throw new HttpProblem(404, 'not-found', `There is no assistant "${id.slice(0, 100)}".`, {
    remedy: `This server has: ${[...core.programs.keys()].join(', ') || 'none'}.`,
  })
}

function programOf({ core, params }: Call): ServerProgram {
  return programNamed(core, params['assistant'] ?? '')
}

function describe({ plan }: ServerProgram) {
  return {
    assistant_id: assistantId(plan.name),
    graph_id: plan.name,
    name: plan.name,
    description: null,
    config: {},
    context: {},
    metadata: { created_by: 'system', version: plan.version },
    version: 1,
    created_at: SINCE,
    updated_at: SINCE,
  }
}

function found(core: ServerCore, body: unknown) {
  const { graph_id: graph, name } = body as { readonly graph_id?: string; readonly name?: string }
  return [...core.programs.values()]
    .filter(({ plan }) => (graph ?? plan.name) === plan.name && plan.name.includes(name ?? ''))
    .map(describe)
}
