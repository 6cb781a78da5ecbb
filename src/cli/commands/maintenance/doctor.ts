import { describeStoreUrl } from '../../../internal.js'
import type { Holdfast } from '../../../index.js'
import type { Survives, Survival } from '../../../driver.js'
import { reportError } from '../../cli-error.js'
import type { Command } from '../../command.js'
import { EXIT } from '../../exit-codes.js'
import { clean, type Output, type Paint } from '../../screen/output.js'
import { readVersion } from '../../version.js'

interface Check {
  readonly name: string
  readonly status: 'ok' | 'warning' | 'failed'
  readonly found: string
  /** What to change. */
  readonly remedy?: string
}

/** Clocks further apart than this make wake times and expiry come early or late. */
const MOST_SKEW_MS = 2000

/** Looks whether the store is there, what it keeps and what it would lose, and says what to change. */
export const run: Command = async (context, _args, options) => {
  const { output } = context
  const checks: Check[] = [checkNode()]
  const settings = await context.settings()
  const began = performance.now()
  let hf: Holdfast | undefined
  try {
    hf = await context.open()
    const ms = Math.round(performance.now() - began)
    const from = settings.source ? ` (from ${settings.source})` : ''
    checks.push({
      name: 'store',
      status: 'ok',
      found: `${describeStoreUrl(settings.store ?? '')}${from}, opened in ${ms} ms`,
    })
    checks.push({ name: 'schema', status: 'ok', found: 'fits this version; what was missing was added' })
  } catch (error) {
    const { message, remedy, code } = reportError(error, false)
    const name = code === 'schema-too-new' ? 'schema' : 'store'
    checks.push({ name, status: 'failed', found: message, ...(remedy ? { remedy } : {}) })
  }
  if (hf) {
    checks.push(...checkDurability(hf.survives), await checkClock(hf))
    if (options['readOnly'] !== true) checks.push(await checkWriting(hf))
    checks.push({ name: 'retention', status: 'ok', found: hf.retention }, ...(await checkThreads(hf)))
  }
  const failed = checks.some(({ status }) => status === 'failed')
  if (output.json) {
    output.document({
      ok: !failed,
      checks,
      ...(hf ? { durability: hf.survives, capabilities: hf.capabilities } : {}),
    })
  } else print(output, checks)
  return failed ? EXIT.failed : EXIT.ok
}

function checkNode(): Check {
  const { node } = process.versions
  const [major = 0, minor = 0] = node.split('.').map(Number)
  const found = `holdfast ${readVersion()}, Node ${node}, ${process.platform} ${process.arch}`
  if (major > 20 || (major === 20 && minor >= 20)) return { name: 'versions', status: 'ok', found }
  return { name: 'versions', status: 'failed', found, remedy: 'Use Node 20.20 or later.' }
}

const MEANING: Readonly<Record<Survival, string>> = {
  yes: 'nothing is lost',
  no: 'everything may be lost',
  'recent-loss': 'the newest may be lost',
  'not-applicable': 'not applicable',
}

function checkDurability(durability: Survives): readonly Check[] {
  const { processKill, osCrash, powerLoss, failover, lossWindowMs, settings, note } = durability
  const window = lossWindowMs === undefined ? '' : `, up to ${lossWindowMs} ms`
  const all = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  const weak = [processKill, osCrash, powerLoss].some((survival) => survival !== 'yes')
  return [
    { name: 'settings', status: 'ok', found: all.join(', ') },
    {
      name: 'durability',
      status: weak ? 'warning' : 'ok',
      found:
        `${note} Killed process: ${MEANING[processKill]}. Power loss: ${MEANING[powerLoss]}${window}. ` +
        `Failover: ${MEANING[failover]}.`,
      ...(weak ? { remedy: adviseDurability(settings) } : {}),
    },
  ]
}

/** The setting to change, by the settings that were found. */
function adviseDurability(settings: Readonly<Record<string, string>>): string {
  if ('journal_mode' in settings) return 'Open with ?synchronous=full, on a local disk that can do WAL.'
  if ('appendonly' in settings || 'save' in settings) return 'Set appendonly yes and appendfsync always on the server.'
  if ('synchronous_commit' in settings) {
    return settings['fsync'] === 'on' && settings['full_page_writes'] === 'on'
      ? 'Set synchronous_commit = on for this role and database.'
      : 'Set fsync = on and full_page_writes = on on the server.'
  }
  if (settings['filesystem'] === 'tmpfs' || settings['filesystem'] === 'ramfs') return 'Move the folder to a disk.'
  return 'fsync' in settings ? 'Open without ?fsync=off.' : 'Use a store that is kept on disk.'
}

async function checkClock(hf: Holdfast): Promise<Check> {
  const before = Date.now()
  const there = await hf.serverTime()
  const after = Date.now()
  if (there === undefined) {
    return { name: 'clock', status: 'ok', found: `this machine's: ${new Date(after).toISOString()}` }
  }
  // The reply was made somewhere between; only what lies outside of that is certain.
  const skew = there.getTime() < before ? there.getTime() - before : Math.max(0, there.getTime() - after)
  const found = `the server is ${Math.round(Math.abs(skew))} ms ${skew < 0 ? 'behind' : 'ahead of'} this machine`
  if (Math.abs(skew) <= MOST_SKEW_MS) return { name: 'clock', status: 'ok', found }
  return {
    name: 'clock',
    status: 'warning',
    found,
    remedy: 'Synchronize both by NTP: wake times and expiry go by wall time.',
  }
}

/** A write and a read of the shared memory, taken back at once. */
async function checkWriting(hf: Holdfast): Promise<Check> {
  const items = hf.store.scope({ holdfast: 'doctor' }).collection<unknown>('probe')
  const key = `probe-${process.pid}`
  const began = performance.now()
  try {
    await items.put(key, { at: Date.now() }, { ttlMs: 60_000 })
    const written = performance.now()
    const found = await items.get(key)
    const read = performance.now()
    await items.delete(key)
    if (found === undefined) throw new Error('What was written is not there.')
    const times = `written in ${(written - began).toFixed(1)} ms, read in ${(read - written).toFixed(1)} ms`
    return { name: 'writing', status: 'ok', found: times }
  } catch (error) {
    const { message, remedy } = reportError(error, false)
    return { name: 'writing', status: 'failed', found: message, ...(remedy ? { remedy } : {}) }
  }
}

async function checkThreads(hf: Holdfast): Promise<readonly Check[]> {
  const { threads } = await hf.threads({ status: 'active', order: 'updated', direction: 'asc', limit: 1000 })
  const now = Date.now()
  const left = threads.filter(
    ({ claimedBy, wakeAt }) => claimedBy === null && wakeAt !== null && wakeAt.getTime() < now - 60_000,
  )
  if (left.length === 0) return [{ name: 'workers', status: 'ok', found: 'no thread is waiting for a worker' }]
  return [
    {
      name: 'workers',
      status: 'warning',
      found: `${left.length} threads have been due for more than a minute, and no worker picks them up`,
      remedy: 'Start a worker for their programs: holdfast worker <file>.',
    },
  ]
}

/** Where what was found begins. */
const INDENT = 21

function print(output: Output, checks: readonly Check[]): void {
  const paints: Readonly<Record<Check['status'], Paint>> = { ok: 'green', warning: 'yellow', failed: 'red' }
  for (const { name, status, found, remedy } of checks) {
    const head = `${output.paint(paints[status], status.padEnd(8))} ${name.padEnd(11)} `
    output.line(head + output.wrap(clean(found), INDENT))
    if (remedy) output.line(' '.repeat(INDENT) + output.wrap(`${output.paint('bold', 'change:')} ${remedy}`, INDENT))
  }
}
