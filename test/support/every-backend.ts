import { type Holdfast, openHoldfast, type OpenOptions } from 'holdfast'
import { afterAll, describe } from 'vitest'
import { type Backend, durableBackends } from './backends.js'

const memory: Backend = {
  name: 'memory',
  missing: false,
  fresh: async () => 'memory:',
  cleanup: async () => {},
}

/** Memory and the durable backends. */
export async function everyBackend(): Promise<Backend[]> {
  return [memory, ...(await durableBackends())]
}

/** One suite, run on every backend with stores of its own, which are closed when it is over. */
export async function onEveryBackend(
  title: string,
  suite: (open: (options?: OpenOptions) => Promise<Holdfast>, backend: Backend) => void,
): Promise<void> {
  for (const backend of await everyBackend()) {
    describe.skipIf(backend.missing)(`${title} on ${backend.name}`, () => {
      const opened: Holdfast[] = []
      afterAll(async () => {
        await Promise.all(opened.map((hf) => hf.close()))
        await backend.cleanup()
      })
      suite(async (options) => {
        const hf = await openHoldfast(await backend.fresh(), options)
        opened.push(hf)
        return hf
      }, backend)
    })
  }
}
