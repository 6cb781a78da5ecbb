import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ownPackage } from './own-package.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** The files of a new project that are copied, where they are in the package and what they are called there. */
const COPIED: readonly (readonly [path: string, template: string])[] = [
  ['tsconfig.json', 'tsconfig.json'],
  // npm leaves files of this name out of packages, or takes them for its own.
  ['.gitignore', 'gitignore'],
  ['src/agent.ts', 'src/agent.ts'],
  ['src/model.ts', 'src/model.ts'],
  ['src/scripted-model.ts', 'src/scripted-model.ts'],
  ['src/shop.ts', 'src/shop.ts'],
  ['src/main.ts', 'src/main.ts'],
  ['test/survives-a-kill.test.ts', 'test/survives-a-kill.test.ts'],
  ['README.md', 'README.md'],
]

export interface Project {
  readonly name: string
  readonly store: string
  /** Where npm gets Holdfast: a version, `file:…`, or whatever else it takes. */
  readonly from: string | undefined
  /** Where it is made. */
  readonly folder: string
}

/** The files of a new project, by path. */
export function projectFiles({ name, store, from, folder }: Project): Readonly<Record<string, string>> {
  const read = (path: string) => readFileSync(join(ROOT, 'templates', 'agent', path), 'utf8')
  return {
    'package.json': json({
      name,
      version: '0.1.0',
      private: true,
      type: 'module',
      scripts: {
        start: 'tsx src/main.ts',
        worker: 'holdfast worker src/agent.ts',
        threads: 'holdfast threads',
        // The shell or Node finds the files: Node 20 looks for .js only.
        test: 'node --import tsx --test test/*.test.ts',
        types: 'tsc',
      },
      ...dependencies(from ?? ownPackage(ROOT, folder), store),
      engines: { node: '>=20.20' },
    }),
    'holdfast.config.json': json({ store }),
    ...Object.fromEntries(COPIED.map(([path, template]) => [path, read(template).replaceAll('{{name}}', name)])),
  }
}

// The versions that this package itself is tested with, so that the project does not wait for the next major to break it.
function dependencies(from: string, store: string): Readonly<Record<string, Record<string, string>>> {
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly devDependencies: Readonly<Record<string, string>>
  }
  const tested = (...names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, `^${devDependencies[name]}`]))
  const client = /^postgres(ql)?:/.test(store) ? ['pg'] : /^rediss?:/.test(store) ? ['ioredis'] : []
  return {
    dependencies: {
      ...tested('@ai-sdk/openai-compatible', ...client),
      holdfast: from,
      ...tested('zod'),
    },
    devDependencies: tested('@types/node', 'tsx', 'typescript'),
  }
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
