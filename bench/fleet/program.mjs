// @ts-check
import { flow } from 'holdfast'

/**
 * Says when it was started, by the clock of the machine.
 * @param {(id: number, at: number) => void} started
 */
export function makeWoken(started) {
  return flow({ name: 'woken', version: '1.0.0' }, async (ctx, /** @type {number} */ id) => {
    await ctx.step('start', () => {
      started(id, performance.timeOrigin + performance.now())
      return id
    })
  })
}

/** Waits for a person. */
export const asking = flow({ name: 'asking', version: '1.0.0' }, (ctx) => ctx.pause('May we?'))
