import type { Append, StoredEntry } from './contract.js'
import type { LogEnvironment } from './log-environment.js'
import type { CarriedWrite } from './store-contract.js'

/** Reports an append that landed. Without `begun`, only its size: how long it took says nothing about saving. */
export function observeSave(
  { clock, observer, anchors }: LogEnvironment,
  { log, entries, incarnation }: Append,
  carried: readonly CarriedWrite[],
  begun?: number,
): void {
  if (anchors) {
    const { seq, hash } = entries.at(-1) as StoredEntry
    anchors.noteLog(log, { incarnation, seq, hash })
    for (const write of carried) anchors.noteItem(log.tenant, write)
  }
  if (begun !== undefined) observer.record('holdfast.checkpoint.save.duration', clock.monotonic() - begun)
  for (const { body } of entries) observer.record('holdfast.checkpoint.bytes', body.byteLength)
}

/**
 * Reports how long a load takes. Loads of a thread that doesn't exist are not reported: their speed would hide the slow
 * loads.
 */
export async function observeLoad<Loaded extends object | undefined>(
  { clock, observer }: LogEnvironment,
  loading: Promise<Loaded>,
): Promise<Loaded> {
  const begun = clock.monotonic()
  const loaded = await loading
  if (loaded !== undefined) observer.record('holdfast.checkpoint.load.duration', clock.monotonic() - begun)
  return loaded
}
