// Writes docs/api anew: node scripts/docs-api.mjs
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from './build.mjs'
import { makeApiReference } from './docs/api-reference.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const folder = join(root, 'docs', 'api')

if (!(await build(root))) {
  console.error('The build failed; docs/api is as it was.')
  process.exitCode = 1
} else {
  const { pages, undocumented, misplaced } = makeApiReference(root)
  mkdirSync(folder, { recursive: true })
  for (const file of readdirSync(folder)) if (!pages.has(file)) rmSync(join(folder, file))
  for (const [file, text] of pages) writeFileSync(join(folder, file), text)
  console.log(`docs/api: ${[...pages].map(([file, text]) => `${file} ${text.split('\n').length}`).join(', ')} lines`)
  for (const name of undocumented) console.error(`without a comment: ${name}`)
  for (const file of misplaced) console.error(`on no page of scripts/docs/api-pages.mjs: ${file}`)
  if (undocumented.length + misplaced.length > 0) process.exitCode = 1
}
