import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'

/**
 * Where npm gets this very package again, for a project in `folder`: the tarball or repository that it was installed
 * from, the folder of a checkout, or the exact version from a registry. A name alone would not do: the registry may
 * hold something else under it.
 */
export function ownPackage(root: string, folder: string): string {
  const { name, version } = readJson(join(root, 'package.json')) as { readonly name: string; readonly version: string }
  const modules = modulesAbove(root, name)
  if (modules === undefined) return fileSpec(root, folder)
  const resolved = installedFrom(modules, name) ?? askedFor(modules, name)
  if (resolved === undefined || /^https?:/.test(resolved))
    return resolved && isElsewhere(resolved, name) ? resolved : version
  if (!resolved.startsWith('file:')) return resolved
  const path = resolve(dirname(modules), resolved.slice('file:'.length))
  // A tarball that is gone by now: what was unpacked from it is still here.
  return fileSpec(existsSync(path) ? path : root, folder)
}

/** The `node_modules` that a package lies in as such; undefined for a checkout. */
function modulesAbove(root: string, name: string): string | undefined {
  const modules = resolve(root, ...name.split('/').map(() => '..'))
  return modules.endsWith(`${sep}node_modules`) ? modules : undefined
}

/** What npm noted when it installed it. */
function installedFrom(modules: string, name: string): string | undefined {
  const { packages } = readJson(join(modules, '.package-lock.json')) as {
    packages?: Record<string, { resolved?: string }>
  }
  return packages?.[`node_modules/${name}`]?.resolved
}

/** What the project around it asks for, as other package managers leave it. */
function askedFor(modules: string, name: string): string | undefined {
  const project = readJson(join(modules, '..', 'package.json')) as Record<string, Record<string, string> | undefined>
  const spec = project['dependencies']?.[name] ?? project['devDependencies']?.[name]
  return spec !== undefined && /^[a-z+]+:/.test(spec) && !/^(npm|workspace|catalog):/.test(spec) ? spec : undefined
}

/** An address of a tarball that no registry would give this package. */
function isElsewhere(resolved: string, name: string): boolean {
  return !new URL(resolved).pathname.includes(`/${name}/-/`)
}

function fileSpec(path: string, folder: string): string {
  const way = relative(folder, path)
  return `file:${(way === '' ? '.' : way).split(sep).join('/')}`
}

function readJson(path: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
  } catch {
    return {}
  }
}
