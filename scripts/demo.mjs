// @ts-check
// A conversation survives the death of its process, three times, with SIGKILL. Nothing that was acknowledged is lost and
// nothing is done twice.
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const TURNS = 20
const KILLS = 3
const here = fileURLToPath(new URL('.', import.meta.url))
const colour = process.stdout.isTTY && !process.env['NO_COLOR']
const paint = (/** @type {number} */ code, /** @type {string} */ text) =>
  colour ? `\u001b[${code}m${text}\u001b[0m` : text
const [green, red, dim, bold] = [32, 31, 2, 1].map((code) => (/** @type {string} */ text) => paint(code, text))

execFileSync(process.execPath, [join(here, 'build.mjs')], { stdio: 'inherit' })
const { openHoldfast } = await import('holdfast')

const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'))
const store = `sqlite:${join(folder, 'agents.db')}`
const thread = 'customer-42'
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.on(signal, () => process.exit(1))

console.log(bold(`A conversation of ${TURNS} turns on SQLite. Its process is killed with SIGKILL ${KILLS} times.\n`))
/** @type {Map<number, number>} */
const saved = new Map()
/** @type {{ acknowledged: number, found: number }[]} */
const resumes = []
let completed = false
for (let life = 0; !completed && life <= KILLS + 1; life++) {
  const killAfter = life < KILLS ? 2 + Math.floor(Math.random() * 4) : Number.POSITIVE_INFINITY
  completed = await runWorker(killAfter)
}

const hf = await openHoldfast(store)
const log = await hf.log(thread)
const report = await hf.verify(thread)
const messages = /** @type {{ text: string }[]} */ (log.fold.state.messages ?? [])
const lost = [...saved.keys()].filter(
  (turn) => !messages.some(({ text }) => text === `Turn ${turn} of the conversation.`),
)
const doubled = messages.length - new Set(messages.map(({ text }) => text)).size
const history = await log.history({ limit: 1000 })
const bytes = history.reduce((sum, entry) => sum + entry.storedBytes, 0)
await hf.close()

const ok = completed && report?.ok === true && lost.length === 0 && doubled === 0 && messages.length === TURNS
console.log(`
${bold('What was kept')}
  turns in the conversation   ${messages.length} of ${TURNS}
  killed and resumed          ${resumes.length - 1} times
  acknowledged turns lost     ${tell(lost.length)}
  turns done twice            ${tell(doubled)}
  hash chain                  ${report?.ok ? green(`${report.entries} entries verified`) : red(String(report?.problems))}
  bytes stored per entry      ${Math.round(bytes / history.length)}
`)
process.exitCode = ok ? 0 : 1

/** Starts a worker and kills it after it saved that many turns. @param {number} killAfter @returns {Promise<boolean>} */
function runWorker(killAfter) {
  const child = spawn(process.execPath, [join(here, 'demo/worker.mjs'), store, thread, String(TURNS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let left = killAfter
  let done = false
  createInterface({ input: child.stdout }).on('line', (line) => {
    const event = JSON.parse(line)
    if (event.event === 'resumed') {
      resumes.push({ acknowledged: saved.size, found: event.turns })
      console.log(
        `${dim(`[${event.pid}]`)} ${event.turns ? `resumed with ${green(`${event.turns} turns kept`)}` : 'started'}`,
      )
    } else if (event.event === 'saved') {
      saved.set(event.turn, (saved.get(event.turn) ?? 0) + 1)
      console.log(`${dim(`[${event.pid}]`)} turn ${String(event.turn).padStart(2)} saved   ${dim(event.checkpoint)}`)
      // Between two lines the next turn may be on its way to the disk: the kill comes at any moment of it.
      if (--left === 0) setTimeout(() => child.kill('SIGKILL'), Math.random() * 150)
    } else {
      done = true
      console.log(`${dim(`[${event.pid}]`)} ${green('completed')}`)
    }
  })
  return new Promise((resolve) =>
    child.on('close', (_, signal) => {
      if (signal) console.log(`${dim(`[${child.pid}]`)} ${red(`killed with ${signal}`)}`)
      resolve(done)
    }),
  )
}

/** @param {number} count */
function tell(count) {
  return count === 0 ? green('0') : red(String(count))
}
