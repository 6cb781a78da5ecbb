import { END, flow, graph, last, openHoldfast, START } from 'holdfast'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const forever = () => new Promise<never>(() => {})

describe('a step that rejects while the program does not look at it', () => {
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  let listeners: NodeJS.UnhandledRejectionListener[] = []

  // Node ends the process on the first one.
  beforeEach(() => {
    unhandled.length = 0
    listeners = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection')
    process.on('unhandledRejection', note)
  })

  afterEach(() => {
    process.removeAllListeners('unhandledRejection')
    for (const listener of listeners) process.on('unhandledRejection', listener)
  })

  const turns = async () => {
    for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  }

  it('does not end the process when the run is stopped', async () => {
    const sideBySide = flow({ name: 'side', version: '1.0.0' }, async (ctx) => {
      const one = ctx.step('one', forever)
      const other = ctx.step('other', forever)
      await one
      await other
    })
    await using hf = await openHoldfast('memory:')
    const stop = new AbortController()
    const outcome = hf.thread(sideBySide, 'x').run({ input: 1, signal: stop.signal })
    await turns()
    stop.abort()
    await expect(outcome).rejects.toThrow('stopped')
    await turns()
    expect(unhandled).toEqual([])
  })

  it('does not end the process when it fails before it is looked at', async () => {
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const late = flow({ name: 'late', version: '1.0.0' }, async (ctx) => {
      const failing = ctx.step('failing', { retry: { attempts: 1 } }, () => {
        throw new Error('boom')
      })
      await ctx.step('slow', () => held)
      return failing.catch((error: Error) => error.message)
    })
    await using hf = await openHoldfast('memory:')
    const outcome = hf.thread(late, 'x').run({ input: 1 })
    await turns()
    release()
    expect(await outcome).toMatchObject({ status: 'completed', output: expect.stringContaining('boom') })
    expect(unhandled).toEqual([])
  })
})

it('a branch of a node that failed starts nothing more, which the next attempt would start beside it', async () => {
  const begun: string[] = []
  let attempts = 0
  const program = graph({
    name: 'branches',
    version: '1.0.0',
    state: { paid: last<string>(undefined, { initial: '' }) },
  })
    .node('pay', {
      retry: { attempts: 2, initialMs: 1 },
      run: async (_, ctx) => {
        const attempt = ++attempts
        const chain = async () => {
          await ctx.step('look', async () => void (await new Promise(setImmediate)))
          return ctx.step('charge', { effect: 'idempotent' }, async () => {
            begun.push(`attempt ${attempt}`)
            // Whoever else is at it comes by meanwhile.
            for (let i = 0; i < 20; i++) await new Promise(setImmediate)
            return 'charged'
          })
        }
        const fails = async () => {
          if (attempt === 1) throw new Error('connection reset')
        }
        const [paid] = await Promise.all([chain(), fails()])
        return { paid }
      },
    })
    .edge(START, 'pay')
    .edge('pay', END)
  await using hf = await openHoldfast('memory:')
  expect(await hf.thread(program, 't').run({ input: {} })).toMatchObject({
    status: 'completed',
    state: { paid: 'charged' },
  })
  expect(begun).toEqual(['attempt 2'])
})
