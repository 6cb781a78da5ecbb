import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ownPackage } from '#src/cli/input/own-package.js'
import { holdfast } from './command.js'

let top: string

beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-init-')))
})

afterEach(() => rmSync(top, { recursive: true, force: true }))

function write(path: string, content: unknown): string {
  mkdirSync(dirname(join(top, path)), { recursive: true })
  writeFileSync(join(top, path), typeof content === 'string' ? content : JSON.stringify(content))
  return join(top, path)
}

/** The package as it lies in a project's node_modules, and what npm noted of it. */
function installed(resolved?: string): string {
  write('host/node_modules/holdfast/package.json', { name: 'holdfast', version: '1.2.3' })
  if (resolved !== undefined) {
    const packages = { 'node_modules/holdfast': { version: '1.2.3', resolved } }
    write('host/node_modules/.package-lock.json', { packages })
  }
  return join(top, 'host', 'node_modules', 'holdfast')
}

const app = () => join(top, 'app')

describe('a new project gets the package that made it', () => {
  it('from a checkout, by its folder', () => {
    write('checkout/package.json', { name: 'holdfast', version: '1.2.3' })
    expect(ownPackage(join(top, 'checkout'), app())).toBe('file:../checkout')
  })

  it('from a tarball, while it is there; then from what was unpacked', () => {
    const root = installed('file:../holdfast-1.2.3.tgz')
    expect(ownPackage(root, app())).toBe('file:../host/node_modules/holdfast')
    write('holdfast-1.2.3.tgz', 'tarball')
    expect(ownPackage(root, app())).toBe('file:../holdfast-1.2.3.tgz')
  })

  it('from a registry, in exactly this version', () => {
    expect(ownPackage(installed('https://registry.example/holdfast/-/holdfast-1.2.3.tgz'), app())).toBe('1.2.3')
    rmSync(join(top, 'host', 'node_modules', '.package-lock.json'))
    expect(ownPackage(installed(), app())).toBe('1.2.3')
  })

  it('from anywhere else, by its address', () => {
    for (const address of ['https://example.com/builds/holdfast.tgz', 'git+ssh://git@example.com/holdfast.git#abc']) {
      expect(ownPackage(installed(address), app())).toBe(address)
    }
  })

  it('as the project around it asks for it, where the package manager left no note', () => {
    write('host/package.json', { dependencies: { holdfast: 'file:../vendor/holdfast-1.2.3.tgz' } })
    write('vendor/holdfast-1.2.3.tgz', 'tarball')
    expect(ownPackage(installed(), app())).toBe('file:../vendor/holdfast-1.2.3.tgz')
    for (const spec of ['^1.0.0', 'latest', 'workspace:*', 'npm:other@1.0.0']) {
      write('host/package.json', { devDependencies: { holdfast: spec } })
      expect(ownPackage(installed(), app())).toBe('1.2.3')
    }
  })

  it('unless another is named', async () => {
    const read = (name: string) =>
      JSON.parse(readFileSync(join(top, name, 'package.json'), 'utf8')).dependencies.holdfast
    expect(await holdfast(['init', 'a', '--no-install'], { cwd: top })).toMatchObject({ code: 0 })
    const checkout = fileURLToPath(new URL('../..', import.meta.url))
    expect(join(top, 'a', read('a').slice('file:'.length), '/')).toBe(checkout)
    await holdfast(['init', 'b', '--no-install', '--from', 'file:../x.tgz'], { cwd: top })
    expect(read('b')).toBe('file:../x.tgz')
  })
})
