import { listOf, nullable, object, oneOf, ref, type Schema } from '../http/route.js'

const text: Schema = { type: 'string' }
const time: Schema = { type: 'string', format: 'date-time' }
const any: Schema = {}
const count: Schema = { type: 'integer', minimum: 0 }

/** Everything stored, as JSON: dates as ISO text, bigints as digits, bytes as base64. */
const state: Schema = { type: 'object', description: "The program's state." }

const outcome = (status: string, more: Readonly<Record<string, Schema>>): Schema =>
  object({
    status: { const: status },
    id: ref('PathId'),
    thread: ref('ThreadId'),
    branch: text,
    run: text,
    'checkpoint?': text,
    state,
    'resumed?': count,
    'message?': text,
    ...more,
  })

/** The schemas that requests and answers refer to by name. */
const SCHEMAS: Readonly<Record<string, Schema>> = {
  ThreadId: {
    description: 'A plain id, or named parts.',
    anyOf: [
      { type: 'string', minLength: 1, maxLength: 512 },
      { type: 'object', minProperties: 1, additionalProperties: { type: 'string' } },
    ],
  },
  PathId: { type: 'string', description: 'The thread id as paths hold it: plain, {name=value,…}, or ~ and base64url.' },
  Problem: {
    type: 'object',
    description: 'RFC 9457 problem details.',
    properties: {
      type: { type: 'string', description: 'urn:holdfast:problem: and the code.' },
      title: text,
      status: { type: 'integer' },
      detail: text,
      code: text,
      remedy: text,
      retryable: { type: 'boolean' },
    },
    required: ['type', 'title', 'status', 'detail', 'code', 'retryable'],
  },
  Program: object({
    name: text,
    version: text,
    kind: oneOf('agent', 'graph', 'flow'),
    'input?': { description: 'The JSON Schema of its input, where its own schema offers one.' },
  }),
  Thread: object({
    id: ref('PathId'),
    thread: ref('ThreadId'),
    branch: text,
    'parent?': { ...ref('ThreadId'), description: 'The thread whose run started it.' },
    status: text,
    entries: count,
    checkpoint: text,
    createdAt: time,
    updatedAt: time,
    expiresAt: nullable(time),
    wakeAt: nullable(time),
    tags: listOf(text),
    metadata: { type: 'object', additionalProperties: { type: ['string', 'number', 'boolean'] } },
    claimedBy: nullable(text),
    leaseMs: { ...nullable({ type: 'number' }), description: 'How long it stays claimed without a heartbeat.' },
  }),
  ThreadPage: object({ threads: listOf(ref('Thread')), 'cursor?': text }),
  Run: {
    type: 'object',
    properties: { id: text, status: text, program: text, version: text, startedAt: { type: 'number' } },
    required: ['id', 'status', 'program', 'version'],
  },
  Facts: object({
    id: text,
    at: time,
    hash: text,
    status: text,
    createdAt: time,
    expiresAt: nullable(time),
    'program?': text,
    'version?': text,
    'stateVersion?': count,
    'run?': ref('Run'),
    pauses: listOf(ref('Pause')),
    state,
  }),
  Pause: object({
    id: text,
    kind: oneOf('question', 'approval', 'before', 'after', 'unknown-effect', 'permission'),
    step: text,
    question: any,
    'schema?': { description: 'The JSON Schema of a valid answer.' },
    askedAt: time,
    'expiresAt?': time,
    'deferred?': object({ until: time, at: time, 'by?': text }),
    'refused?': object({ reason: text, at: time, 'by?': text }),
  }),
  ThreadPause: {
    allOf: [
      {
        type: 'object',
        properties: { id: text, pathId: ref('PathId'), thread: ref('ThreadId'), branch: text },
        required: ['id', 'pathId', 'thread', 'branch', 'kind', 'question', 'askedAt'],
      },
    ],
  },
  PausePage: object({
    pauses: listOf(ref('ThreadPause')),
    unreadable: listOf(object({ thread: ref('ThreadId'), branch: text })),
    'cursor?': text,
  }),
  Answer: object({
    pathId: ref('PathId'),
    thread: ref('ThreadId'),
    branch: text,
    pause: text,
    kind: text,
    step: text,
    question: any,
    value: any,
    'by?': text,
    at: time,
    askedAt: time,
    checkpoint: text,
  }),
  Checkpoint: object({
    id: text,
    branch: text,
    seq: count,
    kind: text,
    at: time,
    bytes: count,
    hash: text,
    'steps?': listOf(
      object({
        kind: oneOf('model', 'tool', 'node', 'step'),
        name: text,
        path: text,
        status: oneOf('started', 'completed', 'failed', 'unknown'),
        'model?': text,
      }),
    ),
    'events?': listOf({ type: 'object', properties: { type: text }, required: ['type'] }),
    'parent?': {
      type: 'string',
      description: 'The checkpoint before it, on the branch that it came from if it is a fork.',
    },
  }),
  History: object({ checkpoints: listOf(ref('Checkpoint')), 'cursor?': text }),
  Branch: object({
    name: text,
    status: text,
    entries: count,
    head: text,
    createdAt: time,
    updatedAt: time,
    'from?': object({ branch: text, seq: count, checkpoint: text }),
    forks: listOf(ref('Branch')),
  }),
  Differences: listOf({ type: 'object', properties: { path: any }, required: ['path'] }),
  Comparison: object({
    'common?': text,
    state: ref('Differences'),
    branches: listOf(object({ name: text, head: text, status: text, since: count })),
  }),
  Verification: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
  ReplayReport: {
    type: 'object',
    properties: { status: oneOf('identical', 'incomplete', 'differs'), steps: count, state },
    required: ['status', 'steps', 'state'],
  },
  StartedRun: object({
    id: ref('PathId'),
    thread: ref('ThreadId'),
    branch: text,
    input: oneOf('queued', 'taken'),
    'run?': text,
    'checkpoint?': text,
  }),
  RecordedError: {
    type: 'object',
    properties: { name: text, message: text, code: text, kind: text, retryAfterMs: count },
    required: ['name', 'message'],
  },
  Outcome: {
    oneOf: [
      outcome('completed', { 'output?': any }),
      outcome('limited', { limit: text, reason: text, 'output?': any }),
      outcome('paused', { pauses: listOf(ref('Pause')), waiting: listOf(any) }),
      outcome('failed', { error: ref('RecordedError'), canResume: { type: 'boolean' }, pauses: listOf(ref('Pause')) }),
      outcome('incompatible', { reason: text }),
      outcome('pruned', { 'ended?': oneOf('completed', 'cancelled') }),
    ],
  },
  Item: object({
    key: text,
    value: any,
    version: text,
    createdAt: time,
    updatedAt: time,
    expiresAt: nullable(time),
    'score?': { type: 'number' },
  }),
  ItemPage: object({ items: listOf(ref('Item')), 'cursor?': text }),
  Written: object({ key: text, version: text, updatedAt: time, expiresAt: nullable(time) }),
}

/** What stands around a schema so that its references lead somewhere. */
export function componentsOf(): { readonly components: { readonly schemas: typeof SCHEMAS } } {
  return { components: { schemas: SCHEMAS } }
}
