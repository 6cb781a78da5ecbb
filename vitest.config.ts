import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// scripts/test.mjs names a file here to receive what each test file took.
const reportFile = process.env['HOLDFAST_TEST_REPORT']

/** The files that take longest, which their sizes do not tell: one that begins last is waited for by everybody. */
const LONG = [
  'store/store',
  'crash/three-workers',
  'drivers/file-crash',
  'crash/workers',
  'crash/processes',
  'runtime/simulation',
  'packaging/pack',
  'pipeline/crash',
  'studio/',
  'adapters/bullmq/fleet',
  'drivers/file',
  'drivers/postgres',
  'cli/process',
  'crash/',
  'demo/demo',
  'runtime/suite-',
  'docs/readme',
  'drivers/redis',
  'server/graphs-process',
  '/processes',
  'agent/crash',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = LONG.findIndex((path) => moduleId.includes(path))
      return at === -1 ? LONG.length : at
    }
    return (await super.sort(files)).sort((a, b) => place(a) - place(b))
  }
}

export default defineConfig({
  // Node 20 does not parse `await using`, so tests are lowered like src is.
  oxc: { target: 'es2023' },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/fixtures/**'],
    pool: 'forks',
    // Files share what they load: a process of its own for each took longer to load Holdfast than most take to run.
    isolate: false,
    // More than the cores: many tests wait for leases, servers and killed processes.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: LongestFirst },
    // They end what hangs and judge nothing: a machine that does ten other things must not fail a test.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 300_000 } },
    watch: false,
    // What is tested is what is published: dist runs in Node as it is, never transformed.
    server: { deps: { external: [/\/dist\//] } },
    reporters: reportFile ? ['default', ['./scripts/area-reporter.mjs', { file: reportFile }]] : ['default'],
  },
})
