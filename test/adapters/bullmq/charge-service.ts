import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gate } from '../../support/gate.js'

/** One call that reached the service. */
export interface Charge {
  readonly step: 'deposit' | 'rest'
  readonly order: string
  readonly key: string
  /** The process that sent it. */
  readonly by: string
}

/** A service outside, on loopback: counts what reaches it, and answers the second charge of every order only once it is let. */
export async function openChargeService() {
  const calls: Charge[] = []
  const open = gate()
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const charge = JSON.parse(Buffer.concat(parts).toString()) as Charge
    calls.push(charge)
    if (charge.step === 'rest') await open.passed
    response.end(JSON.stringify({ charged: charge.key }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    release: () => open.open(),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
