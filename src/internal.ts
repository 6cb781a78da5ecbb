export { describeRetention } from './core/retention.js'
export { describeStoreUrl } from './core/secrets.js'
export { isProcessMetrics, METRICS_COLLECTION, METRICS_SCOPE } from './telemetry/process-metrics.js'
