// @ts-check
/** The browser in which the real React clients are tested. */
import { execFile } from 'node:child_process'
import { access } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { MissingServerError } from './missing-server.mjs'

const execute = promisify(execFile)
const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']
const remedy =
  'Put chromium on PATH (Debian: `apt-get install chromium`; as root on Linux it is installed by itself), or set ' +
  'HOLDFAST_TEST_CHROMIUM to the path of one.'

/**
 * The path of a Chromium: the machine's own, or Debian's, installed where we are root.
 * @param {{ log?: (line: string) => void }} [options]
 */
export async function findChromium({ log = console.error } = {}) {
  const found = await onPath()
  if (found) return { path: found, from: 'PATH' }
  if (process.platform === 'linux' && process.getuid?.() === 0) {
    log('services: installing chromium with apt-get')
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    const install = () => execute('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'chromium'], { env })
    await install().catch(async () => {
      // The machine's package lists may be older than what there is.
      await execute('apt-get', ['update', '-qq'], { env }).catch(() => {})
      await install().catch(() => {})
    })
    const installed = await onPath()
    if (installed) return { path: installed, from: 'apt-get' }
  }
  throw new MissingServerError('Chromium', remedy)
}

async function onPath() {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  for (const path of NAMES.flatMap((name) => folders.map((folder) => join(folder, name)))) {
    const is = await access(path).then(
      () => true,
      () => false,
    )
    if (is) return path
  }
  return undefined
}
