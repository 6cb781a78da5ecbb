import { isDeepStrictEqual } from 'node:util'
import type { Holdfast, Message, ThreadView } from '../../index.js'
import { messagesOf } from './state-messages.js'
import { toUIMessages, type UiMessage } from './ui-messages.js'

/** More checkpoints than a conversation between people and an agent will have. */
const MAX_HISTORY = 10_000

/** The branch that a conversation is on: the one that changed last. */
export async function currentBranch(hf: Holdfast, thread: string): Promise<string | undefined> {
  const { threads } = await hf.threads({ thread, order: 'updated', direction: 'desc', limit: 1 })
  return threads[0]?.branch
}

/**
 * The recorded message before which a new one belongs, if the client has gone back: it edited a message, wants another
 * answer, or left out what came after. Undefined: the new message comes after everything recorded.
 */
export function goneBackTo(
  known: readonly Message[],
  sent: readonly UiMessage[],
  isRegenerated: boolean,
): string | undefined {
  const said = sent.at(-1) as UiMessage
  const all = toUIMessages(known)
  const same = all.find(({ id }) => id === said.id)
  // If it is sent again unchanged, it is the same request; the input's key says so.
  if (same !== undefined) return isRegenerated || !isSame(same, said) ? said.id : undefined
  const before = sent.at(-2)?.id
  const at = all.findIndex(({ id }) => id === before)
  // What is not recorded, such as a greeting that the page shows by itself, says nothing about where it was.
  if (at < 0) return sent.length === 1 ? all[0]?.id : undefined
  return all.slice(at + 1).find(({ role }) => role === 'user')?.id
}

function isSame(one: UiMessage, other: UiMessage): boolean {
  const text = ({ parts }: UiMessage) => parts.filter(({ type }) => type === 'text').map((part) => part['text'])
  return isDeepStrictEqual(text(one), text(other))
}

/** Creates a branch that ends before a message, and returns its name. */
export async function branchBefore(
  view: ThreadView,
  message: string,
  effects: 'ask' | 'allow' | 'deny',
): Promise<string> {
  const history = await view.history({ events: false, limit: MAX_HISTORY })
  const at = async (i: number) => {
    const { state } = await view.look(history[i]?.id as string).fold()
    return state as {
      readonly state?: unknown
      readonly inputs?: readonly unknown[]
      readonly run?: { status?: string }
    }
  }
  // Newest first: the message is in all of them up to one, and in none from there on.
  let low = 0
  let high = history.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (messagesOf((await at(middle)).state).some(({ id }) => id === message)) low = middle + 1
    else high = middle
  }
  // Where it was only waiting to be read, or the run before it was still going, is no place to start from.
  for (; low < history.length; low++) {
    const { inputs = [], run } = await at(low)
    if (inputs.length === 0 && run?.status !== 'running') {
      return (await view.look(history[low]?.id as string).fork({ effects })).branch
    }
  }
  // It was the first: nothing comes before it.
  const newest = history[0]?.id as string
  return (await view.look(newest).fork({ effects, set: { messages: [] } })).branch
}
