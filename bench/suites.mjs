// @ts-check

/** @typedef {{ run: typeof import('./conversation/suite.mjs').run }} Suite */

/** Loaded when they run: they import what the build makes, and peers that may not be installed. @type {Record<string, () => Promise<Suite>>} */
export const SUITES = {
  log: () => import('./log/suite.mjs'),
  runtime: () => import('./runtime/suite.mjs'),
  cpu: () => import('./cpu/suite.mjs'),
  agent: () => import('./agent/suite.mjs'),
  conversation: () => import('./conversation/suite.mjs'),
  dbos: () => import('./dbos/suite.mjs'),
  fleet: () => import('./fleet/suite.mjs'),
  'fleet-large': () => import('./fleet/large.mjs'),
  demo: () => import('./demo/suite.mjs'),
  store: () => import('./store/suite.mjs'),
  langgraph: () => import('./langgraph/suite.mjs'),
  pipeline: () => import('./pipeline/suite.mjs'),
  security: () => import('./security/suite.mjs'),
  server: () => import('./server/suite.mjs'),
  retention: () => import('./retention/suite.mjs'),
  cache: () => import('./cache/suite.mjs'),
  parcels: () => import('./parcels/suite.mjs'),
}

/** Those that take so long that they are measured only when they are named. */
export const ON_REQUEST = ['fleet-large']

/** Those that the budget has lines for, and the settings that it names. */
export const BUDGETED = ['log', 'runtime', 'cpu', 'agent', 'conversation', 'dbos', 'fleet', 'demo']

/** @param {string} suite @param {readonly import('./backends.mjs').Backend[]} backends */
export function budgetedBackends(suite, backends) {
  // A Map is no floor: on memory only loops are compared.
  const ids = ['sqlite', 'postgres', 'redis', ...(suite === 'agent' ? ['memory'] : [])]
  return backends.filter(({ id }) => ids.includes(id))
}
