export { type GateOptions } from './access/gate.js'
export { type Principal, type Role, ROLES } from './access/principal.js'
export { type Authenticate, makeToken, type ServerToken } from './access/tokens.js'
export { toUIMessageStream } from './ai-sdk/to-ui-message-stream.js'
export type { UiChunk } from './ai-sdk/ui-chunk.js'
export { toUIMessages, type UiMessage } from './ai-sdk/ui-messages.js'
export type { UiWriterOptions } from './ai-sdk/ui-writer.js'
export { createServer, type HoldfastServer } from './create-server.js'
export { type Health, type HealthOptions, serveHealth } from './health/health-server.js'
export type {
  GraphAsk,
  GraphCheckpoint,
  GraphState,
  GraphStore,
  HostedGraph,
  StoreItem,
} from './langgraph/graphs/hosted-graph.js'
export { isLoopback, listen, type Listening, type ListenOptions } from './listen.js'
export { nativeOpenApi } from './native/routes.js'
export type { ChatOptions, ServerLimits, ServerOptions, ServerProgram } from './options.js'
