// @ts-check
// Opens streams of a thread and reads nothing but what comes.
import { connect } from 'node:net'

const [, , port, token, count] = process.argv
for (let i = 0; i < Number(count); i++) {
  const socket = connect(Number(port), '127.0.0.1')
  socket.on('data', () => {})
  socket.on('error', () => process.exit(1))
  socket.write(`GET /v1/threads/read/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`)
}
