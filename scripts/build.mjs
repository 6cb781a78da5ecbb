// Builds src into dist: declarations by tsc, scripts by tsc into build and from there as few files (scripts/bundle.mjs),
// with the .lua and .sql files beside their readers, and the studio's page as one script and one style sheet.
// Incremental: an unchanged tree takes a few seconds.
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
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { bundle } from './bundle.mjs'

const ASSETS = /\.(lua|sql)$/
const BUILD_INFO = '.tsbuildinfo'
const require = createRequire(import.meta.url)
/** What the studio's page is made of, in dist/studio. */
const STUDIO = ['index.html', 'icon.svg', 'studio.js', 'studio.css', 'licenses.txt'].map((name) => join('studio', name))

/** Returns whether the build succeeded; the compiler prints its own errors. */
export async function build(root = join(dirname(fileURLToPath(import.meta.url)), '..')) {
  const src = join(root, 'src')
  const compiled = join(root, 'build')
  const dist = join(root, 'dist')
  const sources = filesIn(src)
  const modules = sources.filter((file) => /(?<!\.d)\.ts$/.test(file)).map((file) => file.slice(0, -'.ts'.length))
  const scripts = modules.map((name) => `${name}.js`)
  const declarations = modules.flatMap((name) => [`${name}.d.ts`, `${name}.d.ts.map`])
  const assets = sources.filter((file) => ASSETS.test(file))
  const hasStudio = existsSync(join(root, 'studio', 'main.tsx'))

  // A deleted source's script would otherwise be bundled.
  removeOthers(compiled, [...scripts, ...assets, BUILD_INFO])
  // tsc trusts its build info and does not notice that an output was removed.
  const isWhole = [...scripts.map((file) => join(compiled, file)), ...declarations.map((file) => join(dist, file))]
  if (!isWhole.every((file) => existsSync(file))) rmSync(join(compiled, BUILD_INFO), { force: true })
  const tsc = require.resolve('typescript/bin/tsc')
  const places = ['--outDir', compiled, '--declarationDir', dist, '--tsBuildInfoFile', join(compiled, BUILD_INFO)]
  const { status } = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.json'), ...places], {
    stdio: 'inherit',
  })
  if (status !== 0) return false

  for (const file of assets) copyIfChanged(join(src, file), join(compiled, file))
  const bundled = await bundle(root)
  if (hasStudio && !buildStudio(root, join(dist, 'studio'))) return false
  // Nor may it live on in dist, where tests would keep passing against it.
  removeOthers(dist, [...declarations, ...bundled, ...(hasStudio ? STUDIO : [])])
  const command = join(dist, 'cli', 'main.js')
  // npm makes what it installs executable; from a clone the build has to.
  if (existsSync(command)) chmodSync(command, 0o755)
  return true
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

function removeOthers(folder, kept) {
  const known = new Set(kept.map((file) => normalize(file)))
  for (const file of filesIn(folder)) {
    if (!known.has(file)) rmSync(join(folder, file))
  }
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
  process.exitCode = (await build()) ? 0 : 1
}
