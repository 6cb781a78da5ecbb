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
]
const ALLOWED = /^(dist|docs|templates)\/|^(LICENSE|README\.md|CHANGELOG\.md|SECURITY\.md|package\.json)$/
const REFUSED = /\.tsbuildinfo$|\.d\.ts\.map$|(^|\/)(node_modules|fixtures)\/|\.(db|tgz|log)$|\.test\.(js|d\.ts)$/

/** Refuses a package that lacks something, holds too much, or has source maps whose sources nobody gets. */
export function checkFiles(root, files) {
  const paths = new Set(files.map(({ path }) => path))
  const missing = NEEDED.filter((path) => !paths.has(path))
  const wrong = [...paths].filter((path) => !ALLOWED.test(path) || REFUSED.test(path))
  const blind = [...paths].filter((path) => path.endsWith('.map') && !hasSources(root, path, paths))
  const found = [
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

function hasSources(root, path, paths) {
  const { sources, sourcesContent } = JSON.parse(readFileSync(join(root, path), 'utf8'))
  return sources.every((source, i) => sourcesContent?.[i] !== undefined || paths.has(join(dirname(path), source)))
}
