import type { Route } from '../http/route.js'
import { fleetRoutes } from './fleet-routes.js'
import { historyRoutes } from './history-routes.js'
import { openApiOf } from './openapi.js'
import { questionRoutes } from './question-routes.js'
import { runRoutes } from './run-routes.js'
import { storeRoutes } from './store-routes.js'
import { systemRoutes } from './system-routes.js'
import { threadRoutes } from './thread-routes.js'

const documented: readonly Route[] = [
  ...systemRoutes,
  ...threadRoutes,
  ...historyRoutes,
  ...runRoutes,
  ...questionRoutes,
  ...storeRoutes,
  ...fleetRoutes,
]

const document: Route = {
  method: 'GET',
  path: '/v1/openapi.json',
  name: 'openApi',
  summary: 'This document',
  role: 'none',
  answer: { schema: { type: 'object' } },
  handle: async () => nativeOpenApi(),
}

/** Everything under /v1. */
export const nativeRoutes: readonly Route[] = [...documented, document]

/** The OpenAPI 3.1 document of the native API, as `/v1/openapi.json` serves it. */
export function nativeOpenApi(): Readonly<Record<string, unknown>> {
  return openApiOf(nativeRoutes)
}
