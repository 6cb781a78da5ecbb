// @ts-check
import net from 'node:net'

/**
 * One Redis command on a connection of its own, so that the helpers depend on no client library.
 * Understands the replies that the helpers ask for: status, error, integer, bulk string.
 * @param {{ port: number, password?: string | undefined, timeoutMs?: number }} server
 * @param {string[]} args
 * @returns {Promise<string>}
 */
export function redisCommand({ port, password, timeoutMs = 2000 }, args) {
  const commands = password ? [['AUTH', password], args] : [args]
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0)
    const socket = net.connect({ port, host: '127.0.0.1' })
    const timer = setTimeout(() => fail(new Error(`no reply from 127.0.0.1:${port} within ${timeoutMs} ms`)), timeoutMs)
    /** @param {Error} error */
    function fail(error) {
      clearTimeout(timer)
      socket.destroy()
      reject(error)
    }
    socket.once('error', fail)
    socket.once('close', () => fail(new Error(`127.0.0.1:${port} closed the connection`)))
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      const replies = readReplies(received)
      const refused = replies.find((reply) => reply.error)
      if (refused) return fail(new Error(refused.text))
      const last = replies[commands.length - 1]
      if (!last) return
      clearTimeout(timer)
      socket.destroy()
      resolve(last.text)
    })
    socket.write(commands.map(encode).join(''))
  })
}

/** @param {string[]} args */
function encode(args) {
  return `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`
}

/**
 * @param {Buffer} bytes
 * @returns {{ text: string, error: boolean }[]} the replies that have arrived whole
 */
function readReplies(bytes) {
  const replies = []
  let at = 0
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return replies
    const kind = String.fromCharCode(bytes[at] ?? 0)
    const head = bytes.toString('utf8', at + 1, lineEnd)
    at = lineEnd + 2
    if (kind !== '$') {
      replies.push({ text: head, error: kind === '-' })
      continue
    }
    const length = Number(head)
    if (bytes.length < at + length + 2) return replies
    replies.push({ text: bytes.toString('utf8', at, at + length), error: false })
    at += length + 2
  }
}
