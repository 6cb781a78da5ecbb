// @ts-check
// A worker in a process of its own, with the options that users get; tells its parent when a run starts.
import { openHoldfast } from 'holdfast'
import { makeWoken } from './program.mjs'

const [url = ''] = process.argv.slice(2)
const hf = await openHoldfast(url)
const worker = hf.worker({ programs: [makeWoken((id, at) => process.send?.({ id, at }))] })
process.on('message', async () => {
  await worker.stop()
  await hf.close()
  process.disconnect()
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
