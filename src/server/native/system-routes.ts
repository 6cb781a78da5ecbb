import { mergeMetrics, mergeSeries } from '../../index.js'
import { jsonSchemaOf } from '../../json-schema/schema-checker.js'
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
    summary: 'Whom the token represents',
    role: 'read',
    answer: {
      schema: object({
        tenant: { type: 'string' },
        subject: { type: 'string' },
        roles: listOf({ type: 'string' }),
        'tenants?': { description: 'Others that it may act for, by the header x-holdfast-tenant; * for all.' },
      }),
    },
    handle: async ({ principal: { tenant, subject, roles, tenants } }) => ({ tenant, subject, roles, tenants }),
  },
  {
    method: 'GET',
    path: '/v1/tenants',
    name: 'listTenants',
    summary: 'The tenants that the token may act for',
    role: 'read',
    answer: { schema: object({ tenants: listOf({ type: 'string' }) }) },
    async handle({ principal: { tenant, tenants = [] }, core }) {
      const others = tenants === '*' ? await core.hf.tenants() : tenants
      return { tenants: [...new Set([tenant, ...others])].sort() }
    },
  },
  {
    method: 'GET',
    path: '/v1/metrics',
    name: 'readMetrics',
    summary: 'What all processes of the store have counted in the last day, of all tenants',
    role: 'admin',
    answer: {
      schema: object({
        processes: listOf({ type: 'object' }),
        total: { type: 'object' },
        series: object({
          from: { type: 'number' },
          stepMs: { type: 'number' },
          values: { type: 'object', additionalProperties: listOf({ type: 'number' }) },
        }),
      }),
    },
    async handle({ core }) {
      const processes = await core.hf.metrics()
      // Each with its own past would be many times as much, and they are put together below.
      const reports = processes.map((report) => ({ ...report, series: undefined }))
      return { processes: reports, total: mergeMetrics(processes), series: mergeSeries(processes, Date.now()) }
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
