export { onProcessSignal } from './core/on-process-signal.js'
export { describeRetention } from './core/retention.js'
export { describeStoreUrl } from './core/secrets.js'
export { isProcessMetrics, METRICS_COLLECTION, METRICS_SCOPE } from './telemetry/process-metrics.js'
