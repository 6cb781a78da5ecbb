// @ts-check
import { setTimeout as sleep } from 'node:timers/promises'
import { flow } from 'holdfast'

/** The clock of the machine, the same in all its processes. */
export const machineMs = () => performance.timeOrigin + performance.now()

/** How many tokens a run of `talking` emits, and how far apart. */
export const TOKENS = 200
const TOKEN_MS = 5
/** More steps than anybody waits for, and how long each takes. */
const STEPS = 5000
const STEP_MS = 5

/**
 * Programs that say when they were started, by the clock of the machine: by input, by an answer, by a signal; one that emits
 * tokens, one that does next to nothing, and one that is always in the middle of a step.
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
  /** Says once in each process that it is there, and stands still until it is told to walk. */
  const here = new Set()
  let walk = () => {}
  const walks = new Promise((/** @type {(value: void) => void} */ resolve) => {
    walk = resolve
  })
  const walking = flow({ name: 'walking', version: '1.0.0' }, async (ctx, /** @type {number} */ id) => {
    for (let i = 0; i < STEPS; i++) {
      await ctx.step(`step ${i}`, async () => {
        if (!here.has(id)) start(id)()
        here.add(id)
        await (i === 0 ? walks : sleep(STEP_MS))
      })
    }
  })
  return { programs: { woken, answered, signalled, talking, short, walking }, walk }
}

/** Waits for a person. */
export const asking = flow({ name: 'asking', version: '1.0.0' }, (ctx) => ctx.pause('May we?'))
