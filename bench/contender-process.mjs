// @ts-check
// One contender (contender.mjs): does what it is asked, one thing after another, and says how long each took.
import { timed } from './statistics.mjs'

process.on('disconnect', () => process.exit())
const tell = (/** @type {object} */ reply) => void process.send?.(reply)
const failed = (/** @type {unknown} */ error) => tell({ failed: String(error instanceof Error ? error.stack : error) })

const { module, options } = JSON.parse(process.argv[2] ?? '{}')
try {
  const subject = await (await import(module)).open(options)
  process.on('message', async (/** @type {{ method: string, args: unknown[] }} */ { method, args }) => {
    try {
      /** @type {unknown} */
      let value
      const ms = await timed(async () => {
        value = await subject[method](...args)
      })
      tell({ ms, value })
    } catch (error) {
      failed(error)
    }
  })
  tell({ opened: true })
} catch (error) {
  failed(error)
}
