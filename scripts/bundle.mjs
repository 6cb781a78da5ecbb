// @ts-check
// Joins the modules in build/ (what tsc made of src) to few files in dist/: Node takes about half a millisecond for each
// file that it loads, and `import 'holdfast'` needs more than 300 modules. The modules of a room that are loaded together
// become `<room>/bundle.js`. In the place of each stays a file that exports what it did, so that every path into dist
// leads to the same classes. Bundles import each other directly.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, posix, relative, sep } from 'node:path'

/** What is loaded together, from these modules on. A room's bundle is for the first of them that come to the room. */
const DOORS = [
  ['index.js'],
  [
    'drivers/memory/memory-driver.js',
    'drivers/file/open-file.js',
    'drivers/sqlite/open-sqlite.js',
    'drivers/sqlite/worker.js',
    'drivers/postgres/open-postgres.js',
    'drivers/redis/open-redis.js',
  ],
  ['adapters/langgraph/index.js'],
  ['adapters/bullmq/index.js'],
  ['pipeline/index.js'],
  ['server/index.js'],
  ['client/index.js'],
]
/** What does something when it is loaded, and is loaded by its own path. */
const PROGRAMS = new Set(['drivers/sqlite/worker.js'])
/** Folders whose rooms are their folders. */
const HALLS = new Set(['drivers', 'adapters'])

/** @type {import('esbuild').BuildOptions} */
const SETTINGS = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  packages: 'external',
  // What tsc made and nothing less: modules that only do something when they are loaded must be loaded.
  treeShaking: false,
  ignoreAnnotations: true,
  legalComments: 'none',
  logLevel: 'warning',
  write: false,
}

/**
 * @typedef {object} Module
 * @property {readonly string[]} imports the modules of ours that are loaded with it, by their paths
 * @property {readonly string[]} exports
 * @property {readonly string[]} own the exports that it does not take from another module
 * @property {boolean} isPlaced whether it looks for files by its own place
 */

/** Fills dist with scripts, their source maps and the files that they read; returns the paths. @param {string} root */
export async function bundle(root) {
  const build = join(root, 'build')
  const dist = join(root, 'dist')
  // From the project that is built, wherever this script lies.
  const esbuild = /** @type {typeof import('esbuild')} */ (createRequire(join(root, 'package.json'))('esbuild'))
  const modules = await readModules(esbuild, build)
  const rooms = new Rooms(modules)

  const { outputFiles = [] } = await esbuild.build({
    ...SETTINGS,
    entryPoints: [
      ...rooms.names().map((room) => ({ in: `room:${room}`, out: `${room}/bundle` })),
      ...[...modules.keys()]
        .filter((path) => rooms.bundleOf(path) === undefined)
        .map((path) => ({ in: join(build, path), out: path.slice(0, -'.js'.length) })),
    ],
    outdir: dist,
    sourcemap: true,
    plugins: [{ name: 'rooms', setup: (hooks) => useRooms(hooks, build, rooms, esbuild) }],
  })
  const files = new Map(outputFiles.map(({ path, text }) => [toPosix(relative(dist, path)), withClassNames(text)]))
  for (const path of modules.keys()) {
    const home = rooms.bundleOf(path)
    if (home === undefined) continue
    const names = rooms.namesOf(path).map(([name, there]) => (name === there ? name : `${there} as ${name}`))
    files.set(path, `export { ${names.join(', ')} } from '${wayTo(home, path)}'\n`)
  }
  for (const path of filesIn(build)) {
    if (/\.(lua|sql)$/.test(path)) files.set(path, readFileSync(join(build, path), 'utf8'))
  }
  for (const [path, text] of files) writeIfChanged(join(dist, path), text)
  return [...files.keys()]
}

/** @param {typeof import('esbuild')} esbuild @param {string} build */
async function readModules(esbuild, build) {
  const entryPoints = filesIn(build).filter((path) => path.endsWith('.js'))
  const { metafile } = await esbuild.build({
    ...SETTINGS,
    absWorkingDir: build,
    entryPoints,
    splitting: true,
    outdir: build,
    metafile: true,
  })
  const outputs = Object.values(metafile?.outputs ?? {})
  const exported = new Map(outputs.map(({ entryPoint, exports }) => [entryPoint, exports]))
  /** @type {Map<string, Module>} */
  const modules = new Map()
  for (const path of entryPoints) {
    const text = readFileSync(join(build, path), 'utf8')
    const taken = [...text.matchAll(/^export \{([^}]*)\} from /gm)].flatMap(([, names = '']) =>
      names.split(',').map((name) => name.trim().split(' as ').at(-1)),
    )
    const exports = exported.get(path) ?? []
    const imports = metafile?.inputs[path]?.imports ?? []
    modules.set(path, {
      imports: imports.flatMap((one) => (one.kind === 'import-statement' && !one.external ? one.path : [])),
      exports,
      own: exports.filter((name) => !taken.includes(name)),
      isPlaced: text.includes('import.meta'),
    })
  }
  return modules
}

/** Which module is in which bundle, and what its exports are called there. */
class Rooms {
  #modules
  /** @type {Map<string, string[]>} */
  #rooms = new Map()
  /** @type {Map<string, string>} */
  #bundles = new Map()
  /** Modules that export a name by which another of their room exports something else. @type {Set<string>} */
  #namesakes = new Set()

  /** @param {ReadonlyMap<string, Module>} modules */
  constructor(modules) {
    this.#modules = modules
    const seen = new Set()
    for (const doors of DOORS) {
      /** @type {Map<string, string[]>} */
      const found = new Map()
      for (const door of doors) this.#enter(door, seen, found)
      for (const [room, paths] of found) this.#furnish(room, paths)
    }
  }

  names() {
    return [...this.#rooms.keys()]
  }

  /** @param {string} path */
  bundleOf(path) {
    return this.#bundles.get(path)
  }

  /** Where other files import a module from. @param {string} path */
  placeOf(path) {
    return this.#namesakes.has(path) ? path : (this.#bundles.get(path) ?? path)
  }

  /** A module's exports and their names in the bundle. @param {string} path @returns {readonly (readonly [string, string])[]} */
  namesOf(path) {
    const mark = this.#namesakes.has(path) ? `$${path.replace(/\.js$/, '').replace(/\W/g, '_')}` : ''
    return (this.#modules.get(path)?.exports ?? []).map((name) => [name, `${name}${mark}`])
  }

  /** The module from which a bundle is made. @param {string} room */
  listOf(room) {
    const lines = (this.#rooms.get(room) ?? []).map((path) => {
      const names = this.namesOf(path).map(([name, there]) => `${name} as ${there}`)
      return this.#namesakes.has(path) ? `export { ${names.join(', ')} } from './${path}'` : `export * from './${path}'`
    })
    return lines.join('\n')
  }

  /** @param {string} path @param {Set<string>} seen @param {Map<string, string[]>} found */
  #enter(path, seen, found) {
    const module = this.#modules.get(path)
    if (module === undefined) throw new Error(`scripts/bundle.mjs names ${path}, which is not in build.`)
    if (seen.has(path)) return
    seen.add(path)
    for (const next of module.imports) this.#enter(next, seen, found)
    const room = roomOf(path)
    // What finds files by its own place stays there.
    const stays = PROGRAMS.has(path) || (module.isPlaced && posix.dirname(path) !== room)
    if (room === undefined || this.#rooms.has(room) || stays) return
    found.set(room, [...(found.get(room) ?? []), path])
  }

  /** @param {string} room @param {string[]} paths */
  #furnish(room, paths) {
    this.#rooms.set(room, paths)
    const owners = new Map()
    for (const path of paths) {
      this.#bundles.set(path, `${room}/bundle.js`)
      for (const name of this.#modules.get(path)?.own ?? []) {
        if (owners.has(name)) this.#namesakes.add(path).add(owners.get(name))
        else owners.set(name, path)
      }
    }
  }
}

/**
 * Leaves out of each bundle, and of each module that is in none, everything else, and leads its imports to where they are.
 * @param {import('esbuild').PluginBuild} hooks @param {string} build @param {Rooms} rooms
 * @param {typeof import('esbuild')} esbuild
 */
function useRooms({ onResolve, onLoad }, build, rooms, esbuild) {
  onResolve({ filter: /^room:/ }, ({ path }) => ({ path: path.slice('room:'.length), namespace: 'room' }))
  onLoad({ filter: /.*/, namespace: 'room' }, ({ path }) => ({ contents: rooms.listOf(path), resolveDir: build }))
  // Comments are a fifth of what users would download, and stay in the declarations, where editors show them. They go with
  // the spaces and line ends, which the bundle gets anew.
  onLoad({ filter: /\.js$/, namespace: 'file' }, async ({ path }) => {
    const text = await readFile(path, 'utf8')
    const options = { minifyWhitespace: true, sourcemap: /** @type {const} */ ('inline'), sourcefile: path }
    return { contents: (await esbuild.transform(text, { ...options, legalComments: 'none' })).code }
  })
  onResolve({ filter: /^\./, namespace: 'file' }, ({ path, resolveDir, importer, kind }) => {
    const target = toPosix(relative(build, join(resolveDir, path)))
    const own = toPosix(relative(build, importer))
    const home = rooms.bundleOf(own)
    if (kind !== 'import-statement') return { path: wayTo(target, home ?? own), external: true }
    if (home !== undefined && home === rooms.bundleOf(target)) return undefined
    return { path: wayTo(rooms.placeOf(target), home ?? own), external: true }
  })
}

/** @param {string} path @returns {string | undefined} */
function roomOf(path) {
  const [first, second] = path.split('/').slice(0, -1)
  return first !== undefined && HALLS.has(first) ? `${first}/${second}` : first
}

/**
 * esbuild writes `var Log = class _Log` for a class that mentions itself, and users would be shown a `_Log`.
 * @param {string} text
 */
function withClassNames(text) {
  const renamed = [...text.matchAll(/^var (\w+) = class (_\1)\b/gm)].map(([, , inner]) => inner)
  return renamed.length === 0
    ? text
    : text.replace(new RegExp(`\\b(${renamed.join('|')})\\b`, 'g'), (name) => name.slice(1))
}

/** @param {string} to @param {string} from */
function wayTo(to, from) {
  const way = posix.relative(posix.dirname(from), to)
  return way.startsWith('.') ? way : `./${way}`
}

/** @param {string} folder */
function filesIn(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(toPosix).sort()
}

/** @param {string} path */
function toPosix(path) {
  return path.split(sep).join('/')
}

/** @param {string} file @param {string} text */
function writeIfChanged(file, text) {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
