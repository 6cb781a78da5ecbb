import type { Message } from '../../index.js'
import type { Op } from '../../log/index.js'

/** The messages that operations on an agent's state add. */
export function messagesIn(ops: readonly Op[]): readonly Message[] {
  return ops.flatMap((op): readonly Message[] => {
    const [kind, path, value] = op as unknown as [string, readonly unknown[], unknown]
    if (kind === 'push' && path.length === 1 && path[0] === 'messages') return asMessages(value)
    if (kind !== 'set') return []
    if (path.length === 0) return asMessages((value as { readonly messages?: unknown } | null)?.messages)
    return path.length === 1 && path[0] === 'messages' ? asMessages(value) : []
  })
}

/** The messages of an agent's state; none where it is another program's. */
export function messagesOf(state: unknown): readonly Message[] {
  return asMessages((state as { readonly messages?: unknown } | null | undefined)?.messages)
}

function asMessages(value: unknown): readonly Message[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value]
  return all.filter(isMessage)
}

function isMessage(value: unknown): value is Message {
  const { id, role, parts } = (value ?? {}) as { id?: unknown; role?: unknown; parts?: unknown }
  return typeof id === 'string' && typeof role === 'string' && Array.isArray(parts)
}
