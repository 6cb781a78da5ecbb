export { nameLog } from '../../core/log-name.js'
