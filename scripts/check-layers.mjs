// Checks that imports point downward only (see the layer picture in CONTRIBUTING.md).
//   node scripts/check-layers.mjs [project root]
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'

/**
 * Folder or file under src/ -> what it may import, besides files of its own. The longest matching key decides.
 * A target is a folder, a file, or `public`: the entry points that package.json exports. `*` is anything.
 * `separate` makes the direct subfolders strangers to each other.
 */
const LAYERS = {
  core: { may: [] },
  codec: { may: ['core'] },
  telemetry: { may: ['core'] },
  log: { may: ['core', 'codec', 'telemetry'] },
  drivers: {
    may: ['core', 'log/contract.ts', 'log/copy-contract.ts', 'log/store-contract.ts', 'drivers/shared'],
    separate: true,
  },
  'drivers/shared': { may: ['core', 'log/contract.ts', 'log/store-contract.ts'] },
  store: {
    may: [
      'core',
      'codec',
      'telemetry/process-metrics.ts',
      'log/contract.ts',
      'log/store-contract.ts',
      'log/items/store-write.ts',
      'log/items/item-store.ts',
    ],
  },
  retention: { may: ['core', 'codec', 'log', 'store', 'telemetry/process-metrics.ts'] },
  copy: { may: ['core', 'codec', 'telemetry/process-metrics.ts', 'log'] },
  archive: { may: ['core', 'codec', 'log', 'copy'] },
  cache: {
    may: [
      'core',
      'log/contract.ts',
      'log/overlay.ts',
      'drivers/redis/client.ts',
      'drivers/redis/server/connect.ts',
      'drivers/redis/server/scrub.ts',
    ],
  },
  fixture: { may: ['core', 'codec', 'log', 'runtime'] },
  'json-schema': { may: ['core', 'codec', 'store/standard-schema.ts'] },
  runtime: { may: ['core', 'codec', 'telemetry', 'json-schema', 'log', 'store'] },
  agent: { may: ['core', 'codec', 'telemetry', 'json-schema', 'runtime', 'store/standard-schema.ts'] },
  pipeline: { may: ['core', 'codec', 'log', 'runtime'] },
  adapters: { may: ['public', 'internal.ts'], separate: true },
  server: { may: ['public', 'internal.ts', 'core', 'json-schema'] },
  client: { may: [] },
  cli: { may: ['public', 'internal.ts', 'demo', 'core/wording/similar.ts', 'core/wording/sentence.ts'] },
  demo: { may: ['public', 'internal.ts'] },
  testing: { may: ['core', 'codec', 'log', 'public', 'internal.ts'] },
  'index.ts': { may: ['*'] },
  'driver.ts': { may: ['*'] },
  'data.ts': { may: ['*'] },
  'errors.ts': { may: ['*'] },
  'types.ts': { may: ['*'] },
  'internal.ts': { may: ['*'] },
  holdfast: { may: ['core', 'codec', 'telemetry', 'log', 'store', 'retention', 'runtime', 'fixture', 'archive'] },
  'store-url.ts': { may: ['core'] },
  'copy-store.ts': { may: ['core', 'log', 'copy', 'open.ts'] },
  'open.ts': {
    may: ['archive', 'cache', 'core', 'codec', 'telemetry', 'log', 'drivers', 'holdfast', 'store-url.ts'],
  },
}

/**
 * Entry points whose classes extend those of an optional peer, and so load it with them. Nothing else may import such
 * a folder: whoever imports `holdfast` never loads the peer.
 */
const PEER_ENTRY_POINTS = {
  'adapters/langgraph': ['@langchain/core', '@langchain/langgraph-checkpoint'],
}

/** Who loads such an entry point with `await import()`, and only when it is asked for what is in it. */
const LAZY_USERS = {
  'cli/commands/data/import-langgraph.ts': ['adapters/langgraph'],
  'cli/input/load-served.ts': ['adapters/langgraph'],
  'server/langgraph/store-routes.ts': ['adapters/langgraph'],
}

/** Where the process may be asked for its environment. Everywhere else settings arrive as arguments. */
const ENVIRONMENT_ALLOWED = ['cli', 'server']

/** Modules that reach the environment without naming `process.env`. */
const PROCESS_MODULES = ['node:process', 'process']

/** Every broken rule under a project's src/, and how many files were read. */
export function checkLayers(root) {
  const project = openProject(resolve(root))
  const files = sourceFiles(project.src)
  return { files: files.length, violations: files.flatMap((file) => checkFile(project, file)) }
}

function openProject(root) {
  const { name, exports = {}, peerDependenciesMeta = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const entryPoints = new Map()
  for (const [subpath, target] of Object.entries(exports)) {
    const path = typeof target === 'string' ? target : target.default
    if (path.startsWith('./dist/')) entryPoints.set(name + subpath.slice(1), sourceName(path.slice('./dist/'.length)))
  }
  const optionalPeers = Object.keys(peerDependenciesMeta).filter((peer) => peerDependenciesMeta[peer].optional)
  return { src: join(root, 'src'), name, entryPoints, optionalPeers }
}

function sourceName(path) {
  return path.replace(/\.([cm]?)js$/, '.$1ts')
}

function sourceFiles(src) {
  if (!existsSync(src)) return []
  return readdirSync(src, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[cm]?ts$/.test(entry.name))
    .map((entry) => relative(src, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort()
}

function checkFile(project, file) {
  const text = readFileSync(join(project.src, file), 'utf8')
  const imports = ts.preProcessFile(text, true, true).importedFiles
  const lineOf = (position) => text.slice(0, position).split('\n').length
  const found = []
  const report = (position, subject, rule) => found.push({ file, line: lineOf(position), subject, rule })

  const layer = layerOf(file)
  if (layer === undefined) {
    report(0, file, 'has no layer: add its folder to LAYERS in scripts/check-layers.mjs')
    return found
  }
  for (const { fileName: specifier, pos } of imports) {
    const rule = importRule(project, file, layer, specifier)
    if (rule !== undefined) report(pos, `imports '${specifier}'`, rule)
  }

  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const mayAskProcess = ENVIRONMENT_ALLOWED.some((folder) => isWithin(file, folder))
  const visit = (node) => {
    const peer = staticPeerImport(project, node)
    if (peer !== undefined && !PEER_ENTRY_POINTS[peerEntryPoint(file)]?.includes(peer)) {
      report(
        node.getStart(),
        `imports '${peer}' when loaded`,
        `optional peers are loaded lazily: use await import('${peer}') where it is needed, or import type`,
      )
    }
    if (!mayAskProcess && readsEnvironment(node)) {
      report(node.getStart(), `uses ${node.getText()}`, `no process.env outside ${ENVIRONMENT_ALLOWED.join(' and ')}`)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function importRule(project, file, layer, specifier) {
  if (PROCESS_MODULES.includes(specifier)) {
    if (ENVIRONMENT_ALLOWED.some((folder) => isWithin(file, folder))) return undefined
    return `no node:process outside ${ENVIRONMENT_ALLOWED.join(' and ')}`
  }
  if (specifier.startsWith('#src/')) return '#src is for tests, benchmarks and scripts: import by relative path'

  const target = targetOf(project, file, specifier)
  if (target === undefined) return undefined
  if (target.startsWith('../')) return 'imports a file outside src/'
  const loadsPeers = peerEntryPoint(target)
  if (loadsPeers !== undefined && loadsPeers !== peerEntryPoint(file) && !LAZY_USERS[file]?.includes(loadsPeers)) {
    return `${loadsPeers} loads optional peers: only users import it, by its own entry point`
  }
  if (target === 'index.ts' && !allows(project, layer, target)) return `${layer} must not import the public index`

  if (layerOf(target) === layer) {
    if (!LAYERS[layer].separate || subfolder(file, layer) === subfolder(target, layer)) return undefined
    return `${layer}/* never import each other; only ${subfolder(file, layer)}/ is its own`
  }
  if (allows(project, layer, target)) return undefined
  return `${layer} may import only: ${LAYERS[layer].may.join(', ') || 'nothing of ours'}`
}

/** The file under src/ that an import means, or undefined for a package of somebody else. */
function targetOf({ src, name, entryPoints }, file, specifier) {
  if (specifier === name || specifier.startsWith(`${name}/`)) {
    return entryPoints.get(specifier) ?? `${specifier} (not exported)`
  }
  if (!specifier.startsWith('.')) return undefined
  const path = relative(src, resolve(src, dirname(file), specifier))
  return sourceName(path.split(sep).join('/'))
}

function allows({ entryPoints }, layer, target) {
  return LAYERS[layer].may.some((allowed) => {
    if (allowed === '*') return true
    if (allowed === 'public') return [...entryPoints.values()].includes(target)
    return isWithin(target, allowed)
  })
}

function layerOf(file) {
  const matching = Object.keys(LAYERS).filter((key) => isWithin(file, key))
  return matching.sort((a, b) => b.length - a.length)[0]
}

function peerEntryPoint(file) {
  return Object.keys(PEER_ENTRY_POINTS).find((folder) => isWithin(file, folder))
}

function isWithin(file, folderOrFile) {
  return file === folderOrFile || file.startsWith(`${folderOrFile}/`)
}

function subfolder(file, layer) {
  return file.slice(layer.length + 1).split('/')[0]
}

function staticPeerImport({ optionalPeers }, node) {
  const isImport = ts.isImportDeclaration(node)
  if (!isImport && !ts.isExportDeclaration(node)) return undefined
  if (isImport ? node.importClause?.isTypeOnly : node.isTypeOnly) return undefined
  const specifier = node.moduleSpecifier?.text
  return optionalPeers.find((peer) => specifier === peer || specifier?.startsWith(`${peer}/`))
}

/** `process.env`, `globalThis.process.env`, `process['env']` and `const { env } = process`. */
function readsEnvironment(node) {
  if (ts.isPropertyAccessExpression(node)) return node.name.text === 'env' && isProcess(node.expression)
  if (ts.isElementAccessExpression(node)) {
    const key = node.argumentExpression
    return ts.isStringLiteralLike(key) && key.text === 'env' && isProcess(node.expression)
  }
  if (ts.isVariableDeclaration(node) && node.initializer && isProcess(node.initializer)) {
    return (
      ts.isObjectBindingPattern(node.name) &&
      node.name.elements.some((element) => (element.propertyName ?? element.name).getText() === 'env')
    )
  }
  return false
}

function isProcess(node) {
  if (ts.isIdentifier(node)) return node.text === 'process'
  return ts.isPropertyAccessExpression(node) && node.name.text === 'process'
}

function main(root) {
  const { files, violations } = checkLayers(root)
  for (const { file, line, subject, rule } of violations) {
    console.error(`src/${file}:${line}  ${subject}\n    ${rule}`)
  }
  if (files === 0) {
    console.error('layers: no TypeScript files under src/')
  } else if (violations.length > 0) {
    console.error(`\nlayers: ${violations.length} violation(s) in ${files} files`)
  } else {
    console.log(`layers: ${files} files, imports point downward only`)
  }
  return files > 0 && violations.length === 0
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const root = process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), '..')
  process.exitCode = main(root) ? 0 : 1
}
