import { flow, openHoldfast } from 'holdfast'
import { type BullmqOptions, openBullmq } from 'holdfast/bullmq'
import { afterEach } from 'vitest'
import { gate } from '../../support/gate.js'
import { postgresUrl, redisUrl } from '../../support/servers.js'

export const queues = [
  { name: 'Redis', connection: await redisUrl() },
  { name: 'Postgres', connection: withSchema(await postgresUrl()) },
].map(({ name, connection = '' }) => ({ name, connection, missing: connection === '' }))

function withSchema(url: string | undefined): string | undefined {
  return url && `${url}${url.includes('?') ? '&' : '?'}schema=bullmq_test`
}

let counter = 0
/** A queue that nobody used yet. */
export const fresh = (): string => `q-${process.pid}-${Date.now().toString(36)}-${counter++}`

const toClose: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of toClose.splice(0).reverse()) await one.close()
})

/** A store in memory whose threads are brought by a queue of its own. */
export async function openScene(options: BullmqOptions) {
  const errors: unknown[] = []
  const hf = await openHoldfast('memory:')
  toClose.push(hf)
  const engine = await openBullmq(hf, { queue: fresh(), onError: (error) => errors.push(error), ...options })
  toClose.push(engine)
  return { hf, engine, errors }
}

/** A program whose one step is counted, tells when it began, and is held open. */
export function heldProgram() {
  const begun = gate<string>()
  const open = gate()
  const calls: string[] = []
  const program = flow<string, string>({ name: 'held', version: '1.0.0' }, (ctx, input) =>
    ctx.step('work', async () => {
      calls.push(input)
      begun.open(input)
      await open.passed
      return input
    }),
  )
  return { program, begun, open, calls }
}

/** A program whose runs are counted, in their order. */
export function countedProgram() {
  const calls: string[] = []
  const program = flow<string, string>({ name: 'counted', version: '1.0.0' }, (ctx, input) =>
    ctx.step('work', async () => {
      calls.push(input)
      return input
    }),
  )
  return { program, calls }
}
