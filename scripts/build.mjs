// Builds src into dist: tsc file by file (the SQLite worker is started by its path, so nothing is bundled), then the
// .lua and .sql files beside their readers, and the studio's page as one script and one style sheet. Incremental: an unchanged tree takes about a second.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ASSETS = /\.(lua|sql)$/
const require = createRequire(import.meta.url)
/** What the studio's page is made of, in dist/studio. */
const STUDIO = ['index.html', 'icon.svg', 'studio.js', 'studio.css', 'licenses.txt'].map((name) => join('studio', name))

/** Returns whether the build succeeded; the compiler prints its own errors. */
export function build(root = join(dirname(fileURLToPath(import.meta.url)), '..')) {
  const src = join(root, 'src')
  const dist = join(root, 'dist')
  const sources = filesIn(src)
  const hasStudio = existsSync(join(root, 'studio', 'main.tsx'))
  const outputs = new Set([...sources.flatMap(outputsOf), ...(hasStudio ? STUDIO : [])])

  // A renamed or deleted source would otherwise live on in dist, and tests would keep passing against it.
  for (const file of filesIn(dist)) {
    if (file !== '.tsbuildinfo' && !outputs.has(file)) rmSync(join(dist, file))
  }
  // tsc trusts its build info and does not notice that an output was removed.
  const missing = [...outputs].some(
    (file) => !ASSETS.test(file) && !STUDIO.includes(file) && !existsSync(join(dist, file)),
  )
  if (missing) rmSync(join(dist, '.tsbuildinfo'), { force: true })

  const tsc = require.resolve('typescript/bin/tsc')
  const compiled = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.json')], { stdio: 'inherit' })

  for (const file of sources) {
    if (ASSETS.test(file)) copyIfChanged(join(src, file), join(dist, file))
  }
  const bundled = !hasStudio || buildStudio(root, join(dist, 'studio'))
  const command = join(dist, 'cli', 'main.js')
  // npm makes what it installs executable; from a clone the build has to.
  if (existsSync(command)) chmodSync(command, 0o755)
  return compiled.status === 0 && bundled
}

function buildStudio(root, folder) {
  // From the project that is built, wherever this script lies.
  const own = createRequire(join(root, 'package.json'))
  const { buildSync } = own('esbuild')
  try {
    buildSync({
      entryPoints: { studio: join(root, 'studio', 'main.tsx') },
      outdir: folder,
      bundle: true,
      minify: true,
      format: 'esm',
      target: 'es2022',
      jsx: 'automatic',
      jsxImportSource: 'preact',
      legalComments: 'none',
      logLevel: 'warning',
    })
  } catch {
    // It has said what is wrong.
    return false
  }
  for (const name of ['index.html', 'icon.svg']) copyIfChanged(join(root, 'studio', name), join(folder, name))
  const bundled = ['preact', '@preact/signals', '@preact/signals-core']
  const licenses = bundled.map((name) => {
    const home = join(root, 'node_modules', name)
    return `${name}\n\n${readFileSync(join(home, 'LICENSE'), 'utf8').trim()}\n`
  })
  writeFileSync(join(folder, 'licenses.txt'), licenses.join('\n---\n\n'))
  return true
}

function outputsOf(file) {
  if (ASSETS.test(file)) return [file]
  if (file.endsWith('.d.ts') || !file.endsWith('.ts')) return []
  const base = file.slice(0, -'.ts'.length)
  return ['.js', '.js.map', '.d.ts', '.d.ts.map'].map((ending) => base + ending)
}

function filesIn(folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
}

function copyIfChanged(from, to) {
  if (existsSync(to) && readFileSync(from).equals(readFileSync(to))) return
  mkdirSync(dirname(to), { recursive: true })
  copyFileSync(from, to)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.exitCode = build() ? 0 : 1
}
