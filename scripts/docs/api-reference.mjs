// Makes docs/api from the built declarations: what a user's editor shows, on a few pages by theme. One heading per
// public name, its comment, and its declaration as it is. Nothing in it depends on the machine or the day.
import { readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import ts from 'typescript'
import { ENTRIES, PAGES } from './api-pages.mjs'

/**
 * Returns { pages, undocumented, misplaced }: a Map from the file in docs/api to its text, the public names without a
 * comment, and the files that no page holds.
 */
export function makeApiReference(root) {
  const dist = join(root, 'dist')
  const program = ts.createProgram({
    rootNames: ENTRIES.map(({ file }) => join(dist, file)),
    options: {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      skipLibCheck: true,
      noLib: true,
      types: [],
    },
  })
  const checker = program.getTypeChecker()
  const found = { names: [], undocumented: [], misplaced: new Set() }
  for (const entry of ENTRIES) collectEntry(entry, { program, checker, dist, found })
  const byDeclaration = new Map(found.names.flatMap((name) => name.declarations.map((one) => [one, name])))
  addMentioned(found, { checker, dist, byDeclaration })

  const pages = new Map()
  for (const page of PAGES) {
    const names = found.names.filter((name) => name.page === page.file).sort(byPlace)
    nameAnchors(page, names)
  }
  for (const page of PAGES) {
    const names = found.names.filter((name) => name.page === page.file).sort(byPlace)
    pages.set(page.file, renderPage(page, names, { checker, byDeclaration }))
  }
  pages.set('README.md', renderIndex(found.names))
  return { pages, undocumented: found.undocumented, misplaced: [...found.misplaced] }
}

function collectEntry(entry, { program, checker, dist, found }) {
  const source = program.getSourceFile(join(dist, entry.file))
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(source))
  for (const symbol of exported) {
    const declarations = declarationsOf(symbol, checker).filter((one) => isOurs(one, dist))
    if (declarations.length === 0) continue
    const file = pathOf(declarations[0], dist)
    const page = PAGES.find(
      ({ entry: of, holds }) => of === entry.name && holds.some((start) => file.startsWith(start)),
    )
    if (page === undefined) {
      found.misplaced.add(file)
      continue
    }
    const name = { name: symbol.name, entry: entry.name, page: page.file, file, declarations, exported: true }
    name.comment = commentOf(declarations)
    if (name.comment === '') found.undocumented.push(`${symbol.name} (src/${file.replace(/\.d\.ts$/, '.ts')})`)
    found.names.push(name)
  }
}

/** Types that public declarations mention without being exported themselves: options of options, mostly. */
function addMentioned(found, { checker, dist, byDeclaration }) {
  const queue = found.names.flatMap(({ declarations, page, entry }) =>
    declarations.map((one) => ({ one, page, entry })),
  )
  for (const { one, page, entry } of queue) {
    for (const symbol of mentionedIn(one, checker)) {
      const declarations = declarationsOf(symbol, checker).filter((other) => isOurs(other, dist) && isType(other))
      if (declarations.length === 0 || byDeclaration.has(declarations[0])) continue
      const file = pathOf(declarations[0], dist)
      if (INTERNAL.test(file)) continue
      const name = {
        name: symbol.name,
        entry,
        page,
        file,
        declarations,
        exported: false,
        comment: commentOf(declarations),
      }
      found.names.push(name)
      for (const other of declarations) byDeclaration.set(other, name)
      queue.push(...declarations.map((other) => ({ one: other, page, entry })))
    }
  }
}

/** What the engine is made of: public types mention it, and nobody outside can do anything with it. */
const INTERNAL = new RegExp(
  `^(${[
    'agent/tools/(tool-set|schema)',
    'codec/secret/data-key',
    'log/(entry/(fold|entry)|write/(group-commit|log-writer)|log-environment|keys/(key-ring|keys))',
    'runtime/(program/(program|graph/graph-declaration|state/state-shape)|run/(environment|state/run-state)|upgrade/upgrade)',
  ].join('|')})`,
)

function declarationsOf(symbol, checker) {
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  return (target.declarations ?? []).map((one) => (ts.isVariableDeclaration(one) ? one.parent.parent : one))
}

function isOurs(node, dist) {
  return node.getSourceFile().fileName.startsWith(dist.split(sep).join('/'))
}

function isType(node) {
  return ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)
}

function pathOf(node, dist) {
  return relative(dist, node.getSourceFile().fileName).split(sep).join('/')
}

/** The names that a declaration's public part uses. */
function mentionedIn(declaration, checker) {
  const symbols = new Set()
  const visit = (node) => {
    if (isHidden(node)) return
    if (ts.isTypeReferenceNode(node) || ts.isExpressionWithTypeArguments(node)) {
      const symbol = checker.getSymbolAtLocation(ts.isTypeReferenceNode(node) ? node.typeName : node.expression)
      if (symbol) symbols.add(symbol)
    }
    ts.forEachChild(node, visit)
  }
  ts.forEachChild(declaration, visit)
  return [...symbols]
}

/** Constructors of handles, what is for subclasses, and what says that it is internal: nobody outside uses it. */
function isHidden(node) {
  if (ts.isPropertyDeclaration(node) && ts.isPrivateIdentifier(node.name)) return true
  if (ts.getJSDocCommentsAndTags(node).some((one) => ts.isJSDoc(one) && /^Internal\b/.test(textOf(one)))) return true
  if (ts.isConstructorDeclaration(node)) return !/Error$|^Holdfast(Saver|Store)?$/.test(node.parent.name?.text ?? '')
  return (ts.getCombinedModifierFlags(node) & (ts.ModifierFlags.Protected | ts.ModifierFlags.Private)) !== 0
}

function commentOf(declarations) {
  for (const one of declarations) {
    const [comment] = ts.getJSDocCommentsAndTags(one).filter(ts.isJSDoc)
    if (comment) return textOf(comment)
  }
  return ''
}

function textOf(comment) {
  return ts.getTextOfJSDocComment(comment.comment)?.trim() ?? ''
}

/** The text of a declaration without its own comment and without what is hidden, in our layout. */
function codeOf(declaration, exportedAs) {
  const source = declaration.getSourceFile()
  let text = source.text.slice(declaration.getStart(source), declaration.getEnd())
  const cuts = []
  const visit = (node) => {
    if (isHidden(node)) cuts.push([node.getFullStart(), node.getEnd()])
    else ts.forEachChild(node, visit)
  }
  ts.forEachChild(declaration, visit)
  const start = declaration.getStart(source)
  for (const [from, to] of cuts.reverse()) text = text.slice(0, from - start) + text.slice(to - start)
  return text
    .split('\n')
    .map((line) => line.replace(/^( {4})+/, (indent) => ' '.repeat(indent.length / 2)).replace(/;$/, ''))
    .filter((line) => line.trim() !== '')
    .join('\n')
    .replace(/^export (declare )?/, '')
    .replace(/^declare /, '')
    .replace(/^((?:interface|type|class|function) )(\w+)/, (_, keyword) => keyword + exportedAs)
}

function renderPage(page, names, context) {
  const lines = [`# ${page.title}`, '', ...page.intro, '']
  const exported = names.filter((one) => one.exported)
  lines.push(exported.map((one) => link(one, '')).join(' · '), '')
  for (const name of exported) lines.push(...renderName(name, context))
  const mentioned = names.filter((one) => !one.exported)
  if (mentioned.length > 0) {
    lines.push('## Types that these mention', '', 'They can be used by shape; their names are not exported.', '')
    for (const name of mentioned) lines.push(...renderName(name, context))
  }
  return `${lines.join('\n').trimEnd()}\n`
}

function renderName(name, { checker, byDeclaration }) {
  const others = new Set(
    name.declarations
      .flatMap((one) => mentionedIn(one, checker))
      .flatMap((symbol) => declarationsOf(symbol, checker).map((one) => byDeclaration.get(one)))
      .filter((other) => other !== undefined && other !== name),
  )
  const see = [...others].sort(byName).map((other) => link(other, other.page === name.page ? '' : other.page))
  return [
    `${name.exported ? '##' : '###'} ${name.name}`,
    '',
    ...(name.comment === '' ? [] : [name.comment, '']),
    '```ts',
    ...name.declarations.map((one) => codeOf(one, name.name)),
    '```',
    '',
    ...(see.length === 0 ? [] : [`See ${see.join(', ')}.`, '']),
  ]
}

function renderIndex(names) {
  const lines = [
    '# API reference',
    '',
    'Generated from the types. The [guides](../README.md) tell how things',
    'are meant to be used.',
    '',
  ]
  for (const { name: entry } of ENTRIES) {
    lines.push(`## \`${entry}\``, '', '| name | |', '|---|---|')
    for (const name of names.filter((one) => one.exported && one.entry === entry).sort(byName)) {
      lines.push(`| ${link(name, name.page)} | ${firstSentence(name.comment)} |`)
    }
    lines.push('')
  }
  return `${lines.join('\n').trimEnd()}\n`
}

/** As Markdown viewers name headings: `Graph` and `graph` on one page are `#graph` and `#graph-1`. */
function nameAnchors(page, names) {
  const taken = new Map([
    [
      page.title
        .toLowerCase()
        .replace(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
      1,
    ],
  ])
  for (const name of names) {
    const plain = name.name.toLowerCase()
    const before = taken.get(plain) ?? 0
    taken.set(plain, before + 1)
    name.anchor = before === 0 ? plain : `${plain}-${before}`
  }
}

function link({ name, anchor }, page) {
  return `[\`${name}\`](${page}#${anchor})`
}

/** What is exported first, then the rest, each by name. */
function byPlace(one, other) {
  return Number(other.exported) - Number(one.exported) || byName(one, other)
}

function firstSentence(comment) {
  const [first] = comment.replace(/\s+/g, ' ').split(/(?<=[.!?])\s(?=[A-Z`])/)
  return (first ?? '').replaceAll('|', '\\|')
}

function byName(one, other) {
  const [a, b] = [one.name.toLowerCase(), other.name.toLowerCase()]
  // Types before values of the same name, so that the order does not depend on how they are found.
  return a < b ? -1 : a > b ? 1 : one.name < other.name ? -1 : one.name > other.name ? 1 : 0
}

/** The pages as they lie in docs/api. */
export function readApiPage(root, file) {
  return readFileSync(join(root, 'docs', 'api', file), 'utf8')
}
