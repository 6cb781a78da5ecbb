export { HoldfastSaver, type HoldfastSaverOptions } from './saver.js'
