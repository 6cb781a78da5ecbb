// Copies a store to another, and after some branches tells its parent and waits there to be killed.
import { copyStore } from 'holdfast/data'

const [from, to] = process.argv.slice(2)
await copyStore(from, to, {
  concurrency: 2,
  onProgress: ({ branches }) => {
    if (branches < 3) return
    process.send?.(branches)
    // Nothing goes on behind the message: the parent's kill finds the copy in its middle, however late it comes.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  },
})
