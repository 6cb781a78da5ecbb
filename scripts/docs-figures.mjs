// @ts-check
// Writes the figures of README and docs anew from bench/results.json: node scripts/docs-figures.mjs
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readResults } from '../bench/results.mjs'
import { makeFigures, withBlock } from './docs/figures.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

export function writeFigures() {
  const { files, blocks } = makeFigures(readResults())
  mkdirSync(join(root, 'docs', 'figures'), { recursive: true })
  for (const [file, text] of files) writeFileSync(join(root, file), text)
  for (const [page, block] of blocks) {
    const file = join(root, page)
    writeFileSync(file, withBlock(readFileSync(file, 'utf8'), block))
  }
  console.log(`Drawn from bench/results.json: ${[...files.keys(), ...blocks.keys()].join(', ')}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFigures()
