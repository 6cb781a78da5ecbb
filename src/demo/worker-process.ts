// One worker of the demo: an ordinary `hf.worker` with the support agent. Whoever started it kills it at any moment, and
// learns by these messages sooner what the store says anyway.
import { openHoldfast, type Outcome, type WorkerEvent } from '../index.js'
import { seenState } from '../internal.js'
import { httpModel } from './http-model.js'
import type { FromWorker, Reply, ToWorker, WorkerSettings } from './shop/messages.js'
import { openShop } from './shop/shop.js'
import { makeSupport } from './shop/support-agent.js'

const [given = '{}'] = process.argv.slice(2)
const settings = JSON.parse(given) as WorkerSettings
const { store, cache, tenant, concurrency, leaseMs, name, shopMs, effect } = settings

// Ctrl-C reaches the whole group of processes; the one that started us decides what it means.
process.on('SIGINT', () => {})
process.on('disconnect', () => process.exit(1))

const shop = await openShop(settings.shop)
const model = httpModel(settings.modelUrl, 'scripted-support')
const support = makeSupport({ model, shop, shopMs, ...(effect === undefined ? {} : { effect }) })
// What a killed worker had not reported yet is lost to the figures.
const hf = await openHoldfast(store, { telemetry: { flushEveryMs: 1000 }, ...(cache === undefined ? {} : { cache }) })
const held = new Set<string>()
const worker = hf.tenant(tenant).worker({
  programs: [support],
  concurrency,
  leaseMs,
  name,
  // Looks by itself when places become free; in between a faster look would mostly find what others just claim.
  pollMs: 250,
  // These threads do not end their workers: someone does.
  maxCrashes: 1000,
  handleSignals: false,
  onEvent,
})
process.on('message', ({ type }: ToWorker) => {
  if (type === 'stop') void stop()
})
tell({ type: 'ready' })

function onEvent(event: WorkerEvent): void {
  // Each step says what it does; only the first of it matters here.
  if (event.type === 'event' && held.has(event.log)) return
  const log = event.log ?? ''
  // `thread "bf-17" of tenant "…"`
  const thread = /^thread "([^"]*)"/.exec(log)?.[1] ?? ''
  switch (event.type) {
    case 'event':
      // The first thing that happens after the claim was acknowledged.
      held.add(log)
      return tell({ type: 'held', thread, at: Date.now() })
    case 'ended':
      if (!held.delete(log)) return
      return tell({ type: 'ended', thread, status: event.outcome.status, ...readReply(event.outcome) })
    case 'stopped':
      held.delete(log)
      return tell({ type: 'ended', thread, status: 'stopped' })
    case 'error':
      held.delete(log)
      return tell({ type: 'error', message: event.error instanceof Error ? event.error.message : String(event.error) })
    default:
  }
}

function readReply(outcome: Outcome): { readonly reply?: Reply } {
  if (outcome.status !== 'completed') return {}
  // Asked for its state, an outcome would copy the whole conversation.
  const { messages, usage } = seenState(outcome) as unknown as {
    readonly messages: readonly { readonly role: string }[]
    readonly usage: { readonly total: number }
  }
  return { reply: { answered: messages.filter(({ role }) => role === 'user').length, tokens: usage.total } }
}

async function stop(): Promise<void> {
  await worker.stop()
  await hf.close()
  shop.close()
  process.exit(0)
}

function tell(message: FromWorker): void {
  process.send?.(message)
}
