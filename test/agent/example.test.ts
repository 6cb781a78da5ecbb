import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

describe('the customer-service example', () => {
  it('holds a session of 20 turns without a key: with tools, an approval, a refusal, and restarts', async () => {
    const { MODEL_URL: _url, MODEL_KEY: _key, ...env } = process.env
    const run = promisify(execFile)
    const { stdout } = await run(process.execPath, ['--import', 'tsx', 'examples/customer-service/main.ts'], {
      cwd: root,
      env,
    })
    const said = (who: string) => stdout.split('\n').filter((line) => line.startsWith(who)).length
    expect(said('Maya')).toBe(20)
    expect(said('Support')).toBe(20)
    for (const part of [
      'tracking number PN-4471-0093',
      'size 42, is sold out',
      'initiateReturn of BOOT-FJ-brown-41 waits for a supervisor',
      'your return is RMA-10401',
      'The exchange is arranged (RMA-10402)',
      'arrived 36 days ago',
      'the model is busy',
      'Returns in the shop: 3.',
      '2 resumes saved',
    ]) {
      expect(stdout.replace(/\s+/g, ' ')).toContain(part)
    }
  })
})
