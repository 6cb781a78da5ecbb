import { createHash, randomBytes } from 'node:crypto'
import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { SECRET_BYTES } from '../../codec/secret/data-key.js'
import { writeNewFile } from '../../core/write-new-file.js'
import { HoldfastError, InvalidOptionError } from '../../core/errors.js'
import type { KeyVault } from './key-options.js'

/**
 * Keeps the secrets of tenants in a folder, one file each, readable only by its owner. Keep it apart from the store and
 * from the store's backups: anyone who has both, and the master keys, can read everything. It needs its own backups,
 * from which a destroyed secret must be removed as well.
 */
export function fileVault(folder: string): KeyVault {
  if (typeof folder !== 'string' || folder === '') {
    throw new InvalidOptionError('folder', 'is not the name of a folder', "Pass a path such as '/elsewhere/vault'.")
  }
  // Tenant names may be anything; their hashes are valid file names on every system.
  const pathOf = (tenant: string) => join(folder, createHash('sha256').update(tenant).digest('hex').slice(0, 40))
  return {
    read: (tenant) => readSecret(`${pathOf(tenant)}.key`),
    async create(tenant, secret) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const path = pathOf(tenant)
      const destroyed = await readFile(`${path}.destroyed`, 'utf8').catch(absent)
      if (destroyed !== undefined) throw wasDestroyed(tenant, destroyed)
      const temporary = `${path}.${process.pid}.${randomBytes(6).toString('hex')}.tmp`
      try {
        await writeNewFile(temporary, secret)
        // Complete, and only if there is none: if several processes start at once, one is first and all use its secret.
        await link(temporary, `${path}.key`).catch(exists)
        await flushFolder(folder)
      } finally {
        await rm(temporary, { force: true })
      }
      return (await readSecret(`${path}.key`)) as Uint8Array
    },
    async destroy(tenant) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const path = pathOf(tenant)
      // The mark first: no process may start with a new secret while the data of the old one exists.
      await writeNewFile(`${path}.destroyed`, Buffer.from(new Date().toISOString())).catch(exists)
      await overwrite(`${path}.key`)
      await rm(`${path}.key`, { force: true })
      await flushFolder(folder)
    },
  }
}

async function readSecret(path: string): Promise<Uint8Array | undefined> {
  const bytes = await readFile(path).catch(absent)
  if (bytes === undefined || bytes.length === SECRET_BYTES) return bytes
  throw new HoldfastError('corrupt', `The secret in ${path} has ${bytes.length} bytes instead of ${SECRET_BYTES}.`, {
    data: { path },
    remedy: 'Restore the vault from its backup.',
  })
}

// Before it is removed: the blocks of a removed file may remain readable on the disk for a long time.
async function overwrite(path: string): Promise<void> {
  const file = await open(path, 'r+').catch(absent)
  if (file === undefined) return
  try {
    await file.write(randomBytes(SECRET_BYTES), 0, SECRET_BYTES, 0)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function flushFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  await handle.sync().finally(() => handle.close())
}

function wasDestroyed(tenant: string, when: string): HoldfastError {
  const message = `The secret of tenant ${JSON.stringify(tenant)} was destroyed on ${when.slice(0, 10)}.`
  return new HoldfastError('missing-key', message, { data: { tenant }, remedy: 'Use another tenant id for new data.' })
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

function exists(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}
