import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

// A name that is published can't be taken back. Change the snapshot (vitest -u) only together with the changelog.
it('exports these names, and no others', async () => {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    exports: Record<string, string | { types: string }>
  }
  const doors = Object.entries(exports).flatMap(([door, target]) =>
    typeof target === 'string' ? [] : [{ door: `holdfast${door.slice(1)}`, file: root + target.types.slice(2) }],
  )
  const program = ts.createProgram({
    rootNames: doors.map(({ file }) => file),
    options: {
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      noLib: true,
      types: [],
    },
  })
  const checker = program.getTypeChecker()
  const listed = doors.map(({ door, file }) => {
    const names = checker
      .getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file) as ts.SourceFile) as ts.Symbol)
      .map((symbol) => {
        const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
        const isValue = (target.flags & ts.SymbolFlags.Value) !== 0 && !isTypeOnly(symbol)
        return `${isValue ? 'value' : 'type '} ${symbol.name}`
      })
      .sort()
    return [`# ${door} (${names.length})`, ...names, ''].join('\n')
  })
  await expect(listed.join('\n')).toMatchFileSnapshot('./public-names.txt')
  expect(Number(/# holdfast \((\d+)\)/.exec(listed.join('\n'))?.[1])).toBeLessThanOrEqual(120)
})

function isTypeOnly(symbol: ts.Symbol): boolean {
  return symbol.declarations?.some((one) => ts.isExportSpecifier(one) && ts.isTypeOnlyExportDeclaration(one)) ?? false
}
