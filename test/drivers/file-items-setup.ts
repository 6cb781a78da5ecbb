import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TenantId } from 'holdfast/log'
import { encodeName } from '#src/drivers/file/records/names.js'
import { type FileOptions, openFile } from '#src/drivers/file/open-file.js'
import { afterEach, beforeEach } from 'vitest'

export type FileDriver = Awaited<ReturnType<typeof openFile>>

export const tenant = 'tenant' as TenantId
export const NOW = 1_700_000_000_000
export const DAY_MS = 24 * 60 * 60 * 1000
export let folder: string
export const drivers: FileDriver[] = []

/** Call it once in a test file. */
export function prepare(): void {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-items-'))
  })

  afterEach(async () => {
    await Promise.all(drivers.splice(0).map((driver) => driver.close()))
    await rm(folder, { recursive: true, force: true })
  })
}

export async function open(options: FileOptions = {}): Promise<FileDriver> {
  const driver = await openFile(folder, { fsync: false, ...options })
  drivers.push(driver)
  return driver
}

export function makeItem(version: string, options: { readonly expiresAt?: number; readonly at?: number } = {}) {
  const { expiresAt = null, at = NOW } = options
  return { value: Buffer.from(`value of ${version}`), version, at, expiresAt, fields: [] }
}

export async function put(driver: FileDriver, key: string, version: string, expect?: string | null): Promise<string> {
  const write = { space: 's', key, item: makeItem(version), ...(expect === undefined ? {} : { expect }) }
  const [result] = await driver.writeItems(tenant, [write], NOW)
  return result?.status ?? 'none'
}

export async function remove(driver: FileDriver, key: string): Promise<void> {
  assert.deepEqual(await driver.writeItems(tenant, [{ space: 's', key, item: null }], NOW), [{ status: 'written' }])
}

export async function versionOf(driver: FileDriver, key: string): Promise<string | undefined> {
  const [item] = await driver.readItems(tenant, 's', [key], { now: NOW })
  if (item !== undefined) assert.equal(Buffer.from(item.value).toString(), `value of ${item.version}`)
  return item?.version
}

export function spaceFolder(): string {
  return join(folder, 'tenants', tenant, 'items', 's')
}

export async function recordsOf(key: string): Promise<string[]> {
  const names = await readdir(join(spaceFolder(), encodeName(key))).catch(() => [])
  return names.sort().map((name) => join(spaceFolder(), encodeName(key), name))
}

export async function newestOf(key: string): Promise<string> {
  return (await recordsOf(key)).at(-1) as string
}
