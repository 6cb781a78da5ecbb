// @ts-check
// Takes the comments out of the scripts in dist, before they are packed: they are a fifth of what users download, and
// stay in the declarations, where editors show them. Each file is replaced in one step, because tests may be reading it.
//   node scripts/pack/strip-comments.mjs
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const dist = fileURLToPath(new URL('../../dist', import.meta.url))
const compilerOptions = { removeComments: true, target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext }

for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  // The studio's page is minified, and says whose code it holds.
  if (!name.endsWith('.js') || name.startsWith('studio')) continue
  const file = join(dist, name)
  const text = readFileSync(file, 'utf8')
  if (!/\/[/*]/.test(text)) continue
  const { outputText } = ts.transpileModule(text, { compilerOptions, fileName: file })
  if (outputText === text) continue
  const next = `${file}.${process.pid}.tmp`
  writeFileSync(next, outputText, { mode: statSync(file).mode })
  renameSync(next, file)
}
