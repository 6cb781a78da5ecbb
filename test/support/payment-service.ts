import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A payment service on loopback that counts what reaches it. */
export interface PaymentService {
  readonly payments: readonly { readonly key: string; readonly amount: number }[]
  /** Makes the next payments happen without an answer: the connection breaks. */
  breakAfter(count: number): void
  pay(key: string, amount: number): Promise<string>
  close(): Promise<void>
}

export async function openPaymentService(): Promise<PaymentService> {
  const payments: { key: string; amount: number }[] = []
  let breaking = 0
  const server = createServer((request, response) => {
    payments.push({
      key: String(request.headers['idempotency-key']),
      amount: Number(new URL(request.url ?? '/', 'http://x').searchParams.get('amount')),
    })
    if (breaking > 0) {
      breaking--
      request.socket.destroy()
      return
    }
    response.end(`paid ${payments.length}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/pay?amount=`
  return {
    payments,
    breakAfter(count) {
      breaking = count
    },
    async pay(key, amount) {
      const response = await fetch(`${url}${amount}`, { method: 'POST', headers: { 'idempotency-key': key } })
      return response.text()
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
