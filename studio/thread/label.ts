import type { CheckpointItem, ThreadEvent } from '../../src/client/index.js'
import { brief } from '../format.js'

/** What a checkpoint is called: by its node, tool or model call, or by what happened. */
export interface Label {
  readonly kind: 'input' | 'model' | 'tool' | 'step' | 'ask' | 'answer' | 'fork' | 'end' | 'fail' | 'other'
  readonly text: string
  readonly note: string
  /** Which model was called. */
  readonly model?: string
}

/** A step's name without its place: `12:tool getOrder[2]` is `getOrder`. */
function stepName(path: string): { readonly kind: 'model' | 'tool' | 'step'; readonly name: string } {
  const last = path.split('/').at(-1) ?? path
  const name = last.replace(/^\d+:/, '')
  if (name === 'model' || name === 'compact') return { kind: 'model', name }
  if (name.startsWith('tool ')) return { kind: 'tool', name: name.slice('tool '.length) }
  return { kind: 'step', name }
}

type Said = ThreadEvent & Readonly<Record<string, unknown>>

export function labelOf({ kind, events = [] }: CheckpointItem): Label {
  const all = events as readonly Said[]
  const of = (type: string) => all.filter((event) => event.type === type)
  const ended = of('run').find(
    ({ status }) => status === 'failed' || status === 'incompatible' || status === 'cancelled',
  )
  if (ended || of('parked').length > 0) {
    const error = (ended ?? of('parked')[0])?.['error'] as { readonly message?: string } | undefined
    return { kind: 'fail', text: String(ended?.['status'] ?? 'parked'), note: brief(error?.message ?? '', 160) }
  }
  const limited = of('run').find(({ status }) => status === 'limited')
  if (limited) return { kind: 'fail', text: 'limit', note: brief(limited['reason'] ?? '', 160) }
  const asked = of('pause')[0]
  if (asked) return { kind: 'ask', text: ASKED[String(asked['kind'])] ?? 'question', note: '' }
  const answered = of('answer')[0]
  if (answered) {
    const by = answered['by'] ?? (answered['expired'] ? 'expiry' : undefined)
    return { kind: 'answer', text: 'answer', note: by === undefined ? '' : `by ${brief(by, 80)}` }
  }
  const steps = of('step')
  const first = steps.find(({ status }) => status !== 'started') ?? steps[0]
  if (first) {
    const { kind: what, name } = stepName(String(first['step']))
    const also = steps.filter((step) => step !== first && step['status'] !== 'started').length
    const { status, ms } = first as { readonly status?: string; readonly ms?: number }
    const notes = [
      status === 'completed' ? (ms === undefined ? '' : `${ms} ms`) : (status ?? ''),
      also > 0 ? `+${also}` : '',
      of('run').some((run) => run['status'] === 'completed') ? 'end' : '',
    ]
    return {
      kind: status === 'failed' ? 'fail' : what,
      text: brief(name, 80),
      note: notes.filter(Boolean).join(' · '),
      ...(what === 'model' ? { model: modelOf(of('usage')[0]) } : {}),
    }
  }
  if (kind === 'input') return { kind: 'input', text: 'input', note: '' }
  if (kind === 'fork') return { kind: 'fork', text: 'fork', note: '' }
  if (of('run').some(({ status }) => status === 'completed')) return { kind: 'end', text: 'end', note: '' }
  const deferred = of('defer')[0]
  if (deferred)
    return { kind: 'answer', text: 'put off', note: deferred['by'] ? `by ${brief(deferred['by'], 80)}` : '' }
  return { kind: 'other', text: kind, note: '' }
}

function modelOf(used: Said | undefined): string {
  const { model } = (used?.['usage'] ?? {}) as { readonly model?: { readonly id: string } }
  return model === undefined ? '' : brief(model.id, 60)
}

const ASKED: Readonly<Record<string, string>> = {
  question: 'asks',
  approval: 'asks for approval',
  before: 'asks before it goes on',
  after: 'asks before it goes on',
  'unknown-effect': 'unknown effect',
  permission: 'asks for permission',
}

/** What the model calls of a checkpoint used. */
export function costOf({ events = [] }: CheckpointItem): { readonly tokens: number; readonly cost: number } {
  let [tokens, cost] = [0, 0]
  for (const event of events) {
    if (event.type !== 'usage') continue
    const usage = event['usage'] as { readonly input?: number; readonly output?: number; readonly cost?: number | null }
    tokens += (usage.input ?? 0) + (usage.output ?? 0)
    cost += usage.cost ?? 0
  }
  return { tokens, cost }
}
