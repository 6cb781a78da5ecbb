import { runtimeOn } from '../support/runtime-backend.js'

await runtimeOn('Redis')
