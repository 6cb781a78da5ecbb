import type { Append, StoredEntry } from './contract.js'
import type { Fold } from './entry/fold.js'
import type { LogEnvironment } from './log-environment.js'
import type { CarriedWrite } from './store-contract.js'

/** Tells of an append that landed. Without `begun` only its size: how long it took says nothing of saving. */
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

/** Tells how long a load takes. Of a thread that is not there, nothing: quick looks would hide the slow loads. */
export async function observeLoad<Loaded extends Fold | undefined>(
  { clock, observer }: LogEnvironment,
  loading: Promise<Loaded>,
): Promise<Loaded> {
  const begun = clock.monotonic()
  const loaded = await loading
  if (loaded !== undefined) observer.record('holdfast.checkpoint.load.duration', clock.monotonic() - begun)
  return loaded
}
