import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agent, flow, graph, last, openHoldfast, START, tool } from 'holdfast'
import { pipeline } from 'holdfast/pipeline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'

// As JavaScript calls them: types would not let any of these pass.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Loose = any

const model = {
  specificationVersion: 'v3',
  provider: 'x',
  modelId: 'x',
  supportedUrls: {},
  doGenerate: () => {},
  doStream: () => {},
}
const named = { name: 'a', version: '1.0.0' }
const schema = z.object({})

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-options-'))
})
afterAll(() => rm(folder, { recursive: true }))

const cases: [what: string, given: string, meant: string | undefined, call: (given: string) => unknown][] = [
  ['agent()', 'maxTurn', 'maxTurns', (name) => agent({ ...named, model, [name]: 3 } as Loose)],
  ['tool()', 'needApproval', 'needsApproval', (name) => tool({ inputSchema: schema, [name]: true } as Loose)],
  ['flow()', 'timeout', 'timeoutMs', (name) => flow({ ...named, [name]: 1 } as Loose, async () => 1)],
  ['graph()', 'maxStep', 'maxSteps', (name) => graph({ ...named, state: {}, [name]: 1 } as Loose)],
  [
    'node "only"',
    'efect',
    'effect',
    (name) =>
      graph({ ...named, state: { n: last<number>() } }).node('only', { run: () => ({}), [name]: 'once' } as Loose),
  ],
  ['pipeline()', 'batchSize', 'batch', (name) => pipeline({ ...named, source: [], stages: [], [name]: 1 } as Loose)],
]

describe('a misspelt option', () => {
  it.each(cases)('of %s is refused, with the one that was meant', (owner, given, meant, call) => {
    expect(() => call(given)).toThrow(
      expect.objectContaining({
        code: 'invalid-option',
        message: expect.stringContaining(`"${given}" is not recognized by ${owner}`),
        remedy: expect.stringContaining(`Did you mean ${meant}?`),
      }),
    )
  })

  it('of openHoldfast is refused before anything is opened: a misspelt key would store in the clear', async () => {
    const url = `sqlite:${join(folder, 'never.db')}`
    await expect(openHoldfast(url, { key: 'x'.repeat(32) } as Loose)).rejects.toMatchObject({
      code: 'invalid-option',
      remedy: expect.stringContaining('Did you mean keys?'),
    })
    expect(await readdir(folder)).toEqual([])
  })

  it('of a run, a step or a worker is refused, and nothing is written', async () => {
    const hf = await openHoldfast('memory:')
    const program = flow(named, (ctx) => ctx.step('pay', { efect: 'once' } as Loose, () => 1))
    const thread = hf.thread(program, 't')
    await expect(thread.run({ input: 1, freq: 'none' } as Loose)).rejects.toMatchObject({
      code: 'invalid-option',
      remedy: expect.stringContaining('Did you mean frequency?'),
    })
    expect((await hf.log('t')).exists).toBe(false)
    await expect(thread.run({ input: 1 })).resolves.toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('"efect" is not recognized by ctx.step') },
    })
    expect(() => hf.worker({ programs: [program], concurency: 3 } as Loose)).toThrow(/"concurency" is not recognized/)
    await hf.close()
  })

  it('that is like none says which there are', () => {
    expect(() => flow({ ...named, xyz: 1 } as Loose, async () => 1)).toThrow(
      expect.objectContaining({
        remedy:
          'Use one of: compatibleWith, context, input, name, output, retention, retry, timeoutMs, transientContext, version.',
      }),
    )
    expect(() => graph({ ...named, state: {}, [START]: 1 } as Loose)).toThrow(/is not recognized by graph/)
  })
})

describe('a choice that is misspelt', () => {
  it('is answered with what was given and what may have been meant', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(
      flow({ name: 'f', version: '1.0.0' }, async () => 1),
      'a',
    )
    const run = (options: object) => thread.run({ input: null, ...options } as never)
    await expect(run({ busy: 'que' })).rejects.toMatchObject({
      message: expect.stringContaining(`The option busy must be 'reject', 'queue' or 'interrupt', not "que".`),
      remedy: `Did you mean 'queue'?`,
    })
    await expect(run({ frequency: 7 })).rejects.toThrow(
      `The option frequency must be 'step', 'boundary', 'none' or { every: n }, not 7.`,
    )
  })
})
