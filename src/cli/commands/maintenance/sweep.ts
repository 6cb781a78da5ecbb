import type { StoreRetention } from '../../../index.js'
import { usageError } from '../../cli-error.js'
import { type Command, type Options, text } from '../../command.js'
import { formatThreadId } from '../../input/thread-id.js'
import { clean } from '../../screen/output.js'
import { describeSweep } from '../../screen/sweep-report.js'
import { formatBytes, parseCount, parseDuration } from '../../screen/times.js'

/** Removes what the retention policy no longer keeps, or counts it. */
export const run: Command = async (context, _args, options) => {
  const retention = readRetention(options)
  const grace = text(options, 'grace')
  const program = text(options, 'program')
  const dryRun = options['dryRun'] === true
  const hf = await context.open()
  const { output, signal } = context
  const swept: object[] = []
  const report = await hf.sweep({
    dryRun,
    signal,
    ...(retention === undefined ? {} : { retention }),
    ...(program === undefined ? {} : { metadata: { 'holdfast.program': program } }),
    ...(grace === undefined ? {} : { graceMs: parseDuration(grace, '--grace') }),
    onSwept: ({ tenant, thread, branch, why, entries, bytes }) => {
      const id = formatThreadId(thread)
      if (output.json) swept.push({ tenant, thread: id, ...(branch ? { branch } : {}), why, entries, bytes })
      else
        output.line(
          `${clean(id)}${branch ? ` (${clean(branch)})` : ''} ${why}: ${entries} entries, ${formatBytes(bytes)}`,
        )
    },
  })
  if (output.json) output.document({ ...report, swept })
  else {
    if (retention === undefined) output.note(hf.retention)
    output.line(describeSweep(report))
  }
}

/** The policy that was asked for on the command line. Undefined: the one of the store. */
function readRetention(options: Options): StoreRetention | undefined {
  const ttl = text(options, 'ttl')
  const keepLast = text(options, 'keepLast')
  const keepFor = text(options, 'keepFor')
  const existing = options['existing'] === true
  const archive = options['archive'] === true
  if (existing && (ttl === undefined || ttl === 'never')) {
    throw usageError('--existing needs --ttl.', 'Say how long those threads are kept: --ttl 30d --existing.')
  }
  if (ttl === undefined && keepLast === undefined && keepFor === undefined) {
    if (archive)
      throw usageError('--archive needs a rule.', 'Say what goes: --ttl 30d, --keep-last 10 or --keep-for 7d.')
    return undefined
  }
  return {
    ...(ttl === undefined ? {} : { ttlMs: ttl === 'never' ? ttl : parseDuration(ttl, '--ttl') }),
    ...(keepLast === undefined ? {} : { keepLast: parseCount(keepLast, '--keep-last', 1_000_000_000) }),
    ...(keepFor === undefined ? {} : { keepForMs: parseDuration(keepFor, '--keep-for') }),
    ...(existing ? { existing } : {}),
    ...(archive ? { archive } : {}),
  }
}
