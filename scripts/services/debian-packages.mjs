// @ts-check
/**
 * Programs out of Debian (or Ubuntu) packages, unpacked into a folder and not installed: no root, no service that
 * starts by itself, nothing left on the machine but the cache folder.
 */
import { execFile } from 'node:child_process'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** Libraries whose package isn't named after them. */
const packageOfLibrary = /** @type {Record<string, string>} */ ({ 'libcrypto.so.3': 'libssl3' })

/**
 * @param {object} options
 * @param {string[]} options.packages the packages that hold the program
 * @param {string} options.program path inside the packages, such as `usr/bin/redis-server`
 * @param {string} options.folder where the tree is unpacked
 * @param {(line: string) => void} options.log
 */
export async function unpackDebianPackages({ packages, program, folder, log }) {
  if (process.platform !== 'linux') throw new Error('Debian packages run on Linux only')
  const downloads = join(folder, 'downloads')
  const apt = await findPackages({ packages, downloads, log })
  await unpack(downloads, folder)

  // Only the libraries this machine lacks: its own copies of the others fit its kernel and its updates.
  const known = await dependencyNames(apt, packages)
  for (let round = 0; round < 5; round++) {
    const missing = await missingLibraries(folder, program)
    if (missing.length === 0) break
    const wanted = missing.map((library) => packageFor(library, known))
    log(`services: ${program} also needs ${[...new Set(wanted)].join(', ')}`)
    await apt.download([...new Set(wanted)])
    await unpack(downloads, folder)
  }
  for (const name of ['apt', 'downloads']) await rm(join(folder, name), { recursive: true, force: true })
}

/**
 * The environment that makes an unpacked program find its unpacked libraries.
 * @param {string} folder
 * @returns {Promise<Record<string, string>>}
 */
export async function unpackedEnvironment(folder) {
  const folders = []
  for (const lib of ['usr/lib', 'lib']) {
    const names = await readdir(join(folder, lib)).catch(() => [])
    folders.push(...names.filter((name) => name.includes('-linux-')).map((name) => join(folder, lib, name)))
    folders.push(join(folder, lib))
  }
  return { LD_LIBRARY_PATH: folders.join(':') }
}

/**
 * Downloads with the machine's package lists; where they are absent or out of date, with fresh ones of our own.
 * @param {{ packages: string[], downloads: string, log: (line: string) => void }} options
 */
async function findPackages({ packages, downloads, log }) {
  await mkdir(downloads, { recursive: true })
  const machine = aptWith([], downloads)
  log(`services: fetching ${packages.join(', ')} from the Debian registry`)
  try {
    await machine.download(packages)
    return machine
  } catch {
    log('services: the package lists of this machine are missing or old, fetching fresh ones')
  }
  // The machine's own lists belong to root; apt keeps its state wherever it is told to.
  const state = join(downloads, '..', 'apt')
  await mkdir(join(state, 'lists', 'partial'), { recursive: true })
  await mkdir(join(state, 'cache', 'archives', 'partial'), { recursive: true })
  const settings = [
    `Dir::State=${state}`,
    `Dir::Cache=${join(state, 'cache')}`,
    'Dir::State::status=/var/lib/dpkg/status',
  ]
  const own = aptWith(
    settings.flatMap((setting) => ['-o', setting]),
    downloads,
  )
  await own.update()
  await own.download(packages)
  return own
}

/**
 * @param {string[]} options
 * @param {string} cwd where downloads go
 */
function aptWith(options, cwd) {
  // As root apt drops to a user of its own, who can't write into a project under a private home folder.
  const all = process.getuid?.() === 0 ? [...options, '-o', 'APT::Sandbox::User=root'] : options
  const settings = { cwd, timeout: 180_000, maxBuffer: 64 << 20, env: { ...process.env, LC_ALL: 'C' } }
  return {
    update: () => execute('apt-get', [...all, '-qq', '-o', 'Acquire::Retries=2', 'update'], settings),
    /** @param {string[]} names */
    download: (names) =>
      execute('apt-get', [...all, '-qq', '-o', 'Acquire::Retries=2', 'download', ...names], settings),
    /** @param {string[]} names */
    async dependencies(names) {
      const only = [
        '--no-recommends',
        '--no-suggests',
        '--no-conflicts',
        '--no-breaks',
        '--no-replaces',
        '--no-enhances',
      ]
      const { stdout } = await execute('apt-cache', [...all, 'depends', '--recurse', ...only, ...names], settings)
      return stdout
    },
  }
}

/**
 * @param {ReturnType<typeof aptWith>} apt
 * @param {string[]} packages
 */
async function dependencyNames(apt, packages) {
  const listing = await apt.dependencies(packages)
  return listing.split('\n').filter((line) => /^lib[a-z0-9.+-]+$/.test(line))
}

/**
 * @param {string} downloads
 * @param {string} folder
 */
async function unpack(downloads, folder) {
  for (const name of await readdir(downloads)) {
    if (!name.endsWith('.deb')) continue
    await execute('dpkg', ['-x', join(downloads, name), folder])
    await rm(join(downloads, name))
  }
}

/**
 * @param {string} folder
 * @param {string} program
 */
async function missingLibraries(folder, program) {
  const environment = { ...process.env, LC_ALL: 'C', ...(await unpackedEnvironment(folder)) }
  const { stdout } = await execute('ldd', [join(folder, program)], { env: environment })
  return [...stdout.matchAll(/^\s*(\S+) => not found/gm)].map((match) => /** @type {string} */ (match[1]))
}

/**
 * Debian names a library's package after its soname: `libcares.so.2` is in `libc-ares2`, `libssl.so.3` in `libssl3`
 * or, since the change to 64-bit time, in `libssl3t64`.
 * @param {string} library
 * @param {string[]} known names among the dependencies
 */
function packageFor(library, known) {
  const letters = (/** @type {string} */ name) => name.replace(/\.so\b/, '').replace(/[^a-z0-9]/g, '')
  const wanted = letters(packageOfLibrary[library] ?? library)
  const found = known.find((name) => letters(name) === wanted) ?? known.find((name) => letters(name).startsWith(wanted))
  if (!found) throw new Error(`no package among the dependencies provides ${library}`)
  return found
}
