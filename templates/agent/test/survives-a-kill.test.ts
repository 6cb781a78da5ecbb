// The process is killed after the shop opened the return, and before anything of it was recorded.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openHoldfast } from 'holdfast'
import { support } from '../src/agent.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

void test('a killed run is resumed, and nothing is done twice', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'support-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const store = `sqlite:${join(folder, 'agents.db')}`
  const journal = join(folder, 'shop.jsonl')
  const start = (delay: number) =>
    spawn(process.execPath, ['--import', 'tsx', 'src/main.ts', 'Please take ORD-1 back.'], {
      cwd: root,
      env: {
        ...process.env,
        HOLDFAST_STORE: store,
        SHOP_JOURNAL: journal,
        SHOP_DELAY_MS: `${delay}`,
        LEASE_MS: '1000',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })

  const victim = start(60_000)
  for await (const line of victim.stderr) if (String(line).includes('opened RET-ORD-1')) break
  victim.kill('SIGKILL')

  // Until the lease of the dead process has run out, the thread is busy.
  let said = 'busy'
  while (said.startsWith('busy')) {
    await sleep(200)
    said = ''
    const heir = start(0)
    heir.stderr.pipe(process.stderr)
    for await (const chunk of heir.stdout) said += String(chunk)
  }
  assert.match(said, /Done: your return label is RET-ORD-1-1/)
  assert.equal(readFileSync(journal, 'utf8').trim().split('\n').length, 1, 'the shop opened one return')

  // What the model had said before was read back, not asked for again.
  const hf = await openHoldfast(store)
  t.after(() => hf.close())
  const state = await hf.thread(support, 'demo-1').state()
  assert.equal(state?.usage.calls, 3)
  assert.equal(state.resumes.count, 1)
  assert.ok(state.resumes.tokensSaved > 0)
})
