import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** What a package must hold, whatever else it does. */
const NEEDED = [
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  'package.json',
  'dist/index.js',
  'dist/index.d.ts',
  'dist/cli/main.js',
  'dist/studio/index.html',
  'dist/studio/studio.js',
  'dist/studio/studio.css',
  'dist/studio/licenses.txt',
  'docs/cli.md',
  'templates/agent/src/agent.ts',
  'templates/agent/gitignore',
  'deploy/Dockerfile',
  'deploy/entry.sh',
]
const ALLOWED = /^(dist|deploy|docs|templates)\/|^(LICENSE|README\.md|CHANGELOG\.md|SECURITY\.md|package\.json)$/
const REFUSED = /\.tsbuildinfo$|\.d\.ts\.map$|(^|\/)(node_modules|fixtures)\/|\.(db|tgz|log)$|\.test\.(js|d\.ts)$/

/** Refuses a package that lacks something, holds too much, or has source maps whose sources nobody gets. */
export function checkFiles(root, files) {
  const paths = new Set(files.map(({ path }) => path))
  const missing = NEEDED.filter((path) => !paths.has(path))
  const wrong = [...paths].filter((path) => !ALLOWED.test(path) || REFUSED.test(path))
  const blind = [...paths].filter((path) => path.endsWith('.map') && !hasSources(root, path, paths))
  const untyped = declarationsNeeded(root).filter((path) => !paths.has(path))
  const found = [
    ...untyped.map((path) => `${path} is missing, and types that users get refer to it`),
    ...missing.map((path) => `${path} is missing`),
    ...wrong.map((path) => `${path} does not belong there`),
    ...blind.map((path) => `${path} names sources that are not in the package`),
  ]
  const bin = files.find(({ path }) => path === 'dist/cli/main.js')
  if (bin && !readFileSync(join(root, bin.path), 'utf8').startsWith('#!/usr/bin/env node\n')) {
    found.push('dist/cli/main.js does not say that Node runs it')
  }
  if (found.length > 0) throw new Error(found.join('\n'))
}

/** Every declaration that can be reached from the doors of the package: what its `files` leave out must not be among them. */
function declarationsNeeded(root) {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const open = Object.values(exports).flatMap((door) => (door.types === undefined ? [] : [join(door.types)]))
  const found = new Set()
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (found.has(path)) continue
    found.add(path)
    const text = readFileSync(join(root, path), 'utf8')
    for (const [, name] of text.matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]+)\.js['"]/g)) {
      open.push(join(dirname(path), `${name}.d.ts`))
    }
  }
  return [...found]
}

function hasSources(root, path, paths) {
  const { sources, sourcesContent } = JSON.parse(readFileSync(join(root, path), 'utf8'))
  return sources.every((source, i) => sourcesContent?.[i] !== undefined || paths.has(join(dirname(path), source)))
}
