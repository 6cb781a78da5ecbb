// @ts-check
import { setTimeout as sleep } from 'node:timers/promises'
import { flow } from 'holdfast'

/** The clock of the machine, the same in all its processes. */
export const machineMs = () => performance.timeOrigin + performance.now()

/** How many tokens a run of `talking` emits, and how far apart. */
export const TOKENS = 200
const TOKEN_MS = 5

/**
 * Programs that say when they were started, by the clock of the machine: by input, by an answer, by a signal; one that emits
 * tokens, and one that does next to nothing.
 * @param {(id: number, at: number) => void} started
 */
export function makePrograms(started) {
  const start = (/** @type {number} */ id) => () => {
    started(id, machineMs())
    return id
  }
  const woken = flow({ name: 'woken', version: '1.0.0' }, async (ctx, /** @type {number} */ id) => {
    await ctx.step('start', start(id))
  })
  const answered = flow({ name: 'answered', version: '1.0.0' }, async (ctx, /** @type {number} */ id) => {
    await ctx.pause('May we?')
    await ctx.step('start', start(id))
  })
  const signalled = flow({ name: 'signalled', version: '1.0.0' }, async (ctx, /** @type {number} */ id) => {
    await ctx.receive('go')
    await ctx.step('start', start(id))
  })
  /** Gives back the milliseconds of CPU that its process took meanwhile. */
  const talking = flow({ name: 'talking', version: '1.0.0' }, (ctx) =>
    ctx.step('talk', async (step) => {
      const before = process.cpuUsage()
      for (let i = 0; i < TOKENS; i++) {
        step.emit({ at: machineMs() })
        await sleep(TOKEN_MS)
      }
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1000
    }),
  )
  const short = flow({ name: 'short', version: '1.0.0' }, (ctx, /** @type {number} */ id) => ctx.step('do', start(id)))
  return { woken, answered, signalled, talking, short }
}

/** Waits for a person. */
export const asking = flow({ name: 'asking', version: '1.0.0' }, (ctx) => ctx.pause('May we?'))
