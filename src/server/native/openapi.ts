import type { Route, Schema } from '../http/route.js'
import { ref } from '../http/route.js'
import { componentsOf } from './components.js'

/** The OpenAPI 3.1 document of the native API, made of the very schemas that check requests. */
export function openApiOf(routes: readonly Route[]): Readonly<Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Holdfast', version: '1', description: 'Threads of durable agents, over HTTP.' },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    security: [{ bearer: [] }, { apiKey: [] }],
    paths,
    components: {
      ...componentsOf().components,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
      },
    },
  }
}

function operation(route: Route): Readonly<Record<string, unknown>> {
  const { answer, body, optionalBody = false } = route
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: name === 'thread' ? ref('PathId') : { type: 'string' },
  }))
  const inQuery = Object.entries(route.query ?? {}).map(([name, schema]) => ({ name, in: 'query', schema }))
  return {
    operationId: route.name,
    summary: route.summary,
    ...(route.role === 'none' ? { security: [] } : { 'x-role': route.role }),
    ...(inPath.length + inQuery.length > 0 ? { parameters: [...inPath, ...inQuery] } : {}),
    ...(body === undefined ? {} : { requestBody: { required: !optionalBody, ...content('application/json', body) } }),
    responses: {
      [answer.status ?? 200]: {
        description: answer.description ?? 'Done',
        ...(answer.schema === undefined && answer.type === undefined
          ? {}
          : content(answer.type ?? 'application/json', answer.schema ?? { type: 'string' })),
      },
      default: { description: 'A problem', ...content('application/problem+json', ref('Problem')) },
    },
  }
}

function content(type: string, schema: Schema) {
  return { content: { [type]: { schema } } }
}
