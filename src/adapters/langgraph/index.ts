export { HoldfastSaver, type HoldfastSaverOptions } from './saver.js'
export { HoldfastStore, type HoldfastStoreOptions } from './store.js'
