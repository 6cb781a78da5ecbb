export { HoldfastSaver, type HoldfastSaverOptions } from './saver.js'
export { HoldfastStore, type HoldfastStoreOptions } from './store.js'
export {
  importLangGraph,
  type LangGraphImportOptions,
  type LangGraphImportReport,
} from './import/import-threads.js'
