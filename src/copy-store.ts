import type { CopyOptions, CopyReport } from './copy/copy-report.js'
import { InvalidOptionError } from './core/errors.js'
import { checkOptionNames, type OptionNames } from './core/wording/option-names.js'
import type { Driver } from './log/contract.js'
import { openDriver, type OpenOptions } from './open.js'

/** Settings of the two stores, as `openHoldfast` takes them. */
export interface CopyStoreOptions extends CopyOptions {
  readonly from?: OpenOptions
  readonly to?: OpenOptions
}

const OPTIONS: OptionNames<CopyStoreOptions> = {
  tenant: true,
  since: true,
  deleteMissing: true,
  keys: true,
  concurrency: true,
  signal: true,
  onProgress: true,
  from: true,
  to: true,
}

/**
 * Copies a store to another backend: threads with all branches and history, the store, blobs, wrapped data keys and
 * tombstones, with their hashes unchanged. Takes URLs as `openHoldfast` does, or drivers, which stay open.
 *
 * Nothing at the destination is overwritten: what is in the way is left alone and listed in `refused`. A copy that was
 * stopped or killed continues where it was when it is called again. The source may be in use; what is appended after it
 * was copied is brought over by a second pass (`since`).
 */
export async function copyStore(
  from: string | Driver,
  to: string | Driver,
  options: CopyStoreOptions = {},
): Promise<CopyReport> {
  checkOptionNames('copyStore', options, OPTIONS)
  if (from === to) throw new InvalidOptionError('to', 'is the store to copy from', 'Name two different stores.')
  const { from: fromOptions, to: toOptions, ...rest } = options
  const keys = rest.keys ?? fromOptions?.keys
  const opened: Driver[] = []
  const open = async (store: string | Driver, settings: OpenOptions = {}): Promise<Driver> => {
    if (typeof store !== 'string') return store
    const driver = await openDriver(store, settings)
    opened.push(driver)
    return driver
  }
  try {
    const source = await open(from, fromOptions)
    const target = await open(to, toOptions)
    // Loaded on use, so that a process that only runs threads doesn't have to wait for it.
    const { copyDrivers } = await import('./copy/copy-drivers.js')
    return await copyDrivers(source, target, { ...rest, ...(keys ? { keys } : {}) })
  } finally {
    await Promise.all(opened.map((driver) => driver.close()))
  }
}
