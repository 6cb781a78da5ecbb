import { join } from 'node:path'
import ts from 'typescript'
import { type Block, root } from './blocks.js'

/** What a user with `"strict": true` has. */
const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  types: ['node'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  strict: true,
  skipLibCheck: true,
  noEmit: true,
}

/**
 * Type-checks all blocks in one program, against the built declarations, and returns what the compiler says of each: in
 * the order of the blocks, with the lines of their pages.
 */
export function checkBlocks(blocks: readonly Block[]): readonly (readonly string[])[] {
  const files = blocks.map((block, i) => ({ block, name: join(root, 'docs', `block-${i}.ts`), ...assemble(block) }))
  const texts = new Map(files.map(({ name, text }) => [name, text]))
  const host = ts.createCompilerHost(OPTIONS)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = (name) => texts.has(name) || fileExists(name)
  host.readFile = (name) => texts.get(name) ?? readFile(name)
  host.getSourceFile = (name, options, ...rest) => {
    const text = texts.get(name)
    // Through the host's own reader otherwise, which knows whether a file is a module.
    return text === undefined
      ? getSourceFile(name, options, ...rest)
      : ts.createSourceFile(name, text, options as ts.CreateSourceFileOptions)
  }
  const program = ts.createProgram({ rootNames: [...texts.keys()], options: OPTIONS, host })
  return files.map(({ block, name, linesBefore }) => {
    const source = program.getSourceFile(name)
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
    return found.map(({ start = 0, code, messageText }) => {
      const line = (source?.getLineAndCharacterOfPosition(start).line ?? 0) - linesBefore + block.line
      return `${block.page}:${line} TS${code} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
    })
  })
}

function assemble({ code, given }: Block): { readonly text: string; readonly linesBefore: number } {
  const before = given === '' ? '' : `${given}\n`
  // In braces, so that a block may name its own `hf` although the page's prelude has one.
  const body = /^(import|export) /m.test(code) ? code : `{\n${code}\n}`
  const opened = body === code ? 0 : 1
  return { text: `${before}${body}\nexport {}\n`, linesBefore: before.split('\n').length - 1 + opened }
}
