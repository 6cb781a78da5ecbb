export { HoldfastSaver, type HoldfastSaverOptions } from './saver/saver.js'
export { HoldfastStore, type HoldfastStoreOptions } from './store/store.js'
export {
  importLangGraph,
  type LangGraphImportOptions,
  type LangGraphImportReport,
} from './import/import-threads.js'
export { hostGraph, type GraphProgram, type HostGraphOptions } from './host/host-graph.js'
export type { GraphRequest } from './host/graph-request.js'
