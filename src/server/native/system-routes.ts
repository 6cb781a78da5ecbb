import { mergeMetrics } from '../../index.js'
import { jsonSchemaOf } from '../../runtime/json-schema/json-schema.js'
import { listOf, object, ref, type Route } from '../http/route.js'
import type { ServerProgram } from '../options.js'

/** What the server is and has. */
export const systemRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/health',
    name: 'health',
    summary: 'Whether the server answers',
    role: 'none',
    answer: { schema: object({ ok: { const: true } }) },
    handle: async () => ({ ok: true }),
  },
  {
    method: 'GET',
    path: '/v1/programs',
    name: 'listPrograms',
    summary: 'The programs that this server has',
    role: 'read',
    answer: { schema: object({ programs: listOf(ref('Program')) }) },
    handle: async ({ core }) => ({ programs: await Promise.all([...core.programs.values()].map(describe)) }),
  },
  {
    method: 'GET',
    path: '/v1/me',
    name: 'whoAmI',
    summary: 'Whom the token stands for',
    role: 'read',
    answer: {
      schema: object({ tenant: { type: 'string' }, subject: { type: 'string' }, roles: listOf({ type: 'string' }) }),
    },
    handle: async ({ principal: { tenant, subject, roles } }) => ({ tenant, subject, roles }),
  },
  {
    method: 'GET',
    path: '/v1/metrics',
    name: 'readMetrics',
    summary: 'What all processes of the store have counted in the last day, of all tenants',
    role: 'admin',
    answer: { schema: object({ processes: listOf({ type: 'object' }), total: { type: 'object' } }) },
    async handle({ core }) {
      const processes = await core.hf.metrics()
      return { processes, total: mergeMetrics(processes) }
    },
  },
]

async function describe({ plan }: ServerProgram) {
  const kind = plan.kind === 'flow' ? 'flow' : (plan.role ?? 'graph')
  const { inputSchema } = plan
  // Not every schema can be written as JSON Schema, and none has to be.
  const input = inputSchema && (await jsonSchemaOf(inputSchema).catch(() => undefined))
  return { name: plan.name, version: plan.version, kind, ...(input === undefined ? {} : { input }) }
}
