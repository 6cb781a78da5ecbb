/** A message of a state, whoever made it. Nothing of it is trusted to be there. */
export interface ShownMessage {
  readonly key: string
  readonly role: string
  readonly name?: string
  readonly at?: number
  readonly model?: string
  readonly tokens?: number
  readonly pieces: readonly Piece[]
}

export type Piece =
  | { readonly type: 'text' | 'reasoning' | 'refusal'; readonly text: string }
  | { readonly type: 'call'; readonly call: ShownCall }
  | { readonly type: 'other'; readonly label: string; readonly value: unknown }

export interface ShownCall {
  readonly callId: string
  readonly name: string
  readonly input: unknown
  /** What a person changed the arguments to. */
  readonly edited?: unknown
  readonly output?: { readonly type: string; readonly value?: unknown; readonly reason?: string }
}

type Loose = Readonly<Record<string, unknown>>

/** The messages of a state, each call with what it came to; undefined where the state has none. */
export function readMessages(state: Loose): readonly ShownMessage[] | undefined {
  const { messages } = state
  if (!Array.isArray(messages) || !messages.every((one) => typeof one === 'object' && one !== null)) return undefined
  const results = new Map<string, Loose>()
  for (const message of messages as readonly Loose[]) {
    for (const part of partsOf(message)) {
      if (part['type'] === 'tool-result' && typeof part['callId'] === 'string') results.set(part['callId'], part)
    }
  }
  const called = new Set<string>()
  const shown: ShownMessage[] = []
  for (const [i, message] of (messages as readonly Loose[]).entries()) {
    const pieces = partsOf(message).flatMap((part) => pieceOf(part, results, called))
    if (pieces.length === 0) continue
    const { role, type, id, name, at, model, usage } = message as Loose & {
      readonly model?: { readonly id?: string }
      readonly usage?: { readonly input?: number; readonly output?: number }
    }
    shown.push({
      key: typeof id === 'string' ? id : String(i),
      role: String(role ?? type ?? 'message'),
      ...(typeof name === 'string' ? { name } : {}),
      ...(typeof at === 'number' ? { at } : {}),
      ...(typeof model?.id === 'string' ? { model: model.id } : {}),
      ...(usage === undefined ? {} : { tokens: (usage.input ?? 0) + (usage.output ?? 0) }),
      pieces,
    })
  }
  return shown
}

function partsOf(message: Loose): readonly Loose[] {
  const { parts, content } = message
  if (Array.isArray(parts)) return parts.filter((part) => typeof part === 'object' && part !== null) as readonly Loose[]
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return [{ type: 'raw', value: content ?? message }]
}

function pieceOf(part: Loose, results: ReadonlyMap<string, Loose>, called: Set<string>): readonly Piece[] {
  const { type } = part
  if (type === 'text' || type === 'reasoning' || type === 'refusal') return [{ type, text: String(part['text'] ?? '') }]
  if (type === 'tool-call') {
    const callId = String(part['callId'] ?? '')
    const result = results.get(callId)
    called.add(callId)
    return [
      {
        type: 'call',
        call: {
          callId,
          name: String(part['name'] ?? ''),
          input: part['invalid'] === true ? part['raw'] : part['input'],
          ...(result?.['edited'] === undefined ? {} : { edited: result['edited'] }),
          ...(result === undefined ? {} : { output: result['output'] as ShownCall['output'] }),
        },
      },
    ]
  }
  if (type === 'tool-result') {
    if (called.has(String(part['callId'] ?? ''))) return []
    return [{ type: 'other', label: `result of ${String(part['name'] ?? 'a tool')}`, value: part['output'] }]
  }
  return [{ type: 'other', label: String(type ?? 'part'), value: type === 'raw' ? part['value'] : part }]
}
