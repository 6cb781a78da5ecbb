// A process that saves. Prints what was acknowledged, one JSON line each.
//   node saver.mjs race|endless <url> <thread> <name> [count]
import { uuid6 } from '@langchain/langgraph-checkpoint'
import { HoldfastSaver } from 'holdfast/langgraph'

const [mode, url, thread, name, count = '1'] = process.argv.slice(2)
const config = { configurable: { thread_id: thread, checkpoint_ns: '' } }
const say = (/** @type {unknown} */ line) => process.stdout.write(`${JSON.stringify(line)}\n`)

// All begin together: the parent says when.
await new Promise((resolve) => process.stdin.once('data', resolve))
const saver = await HoldfastSaver.open(url)
await saver.setup()
for (let i = 0; mode === 'endless' || i < Number(count); i++) {
  const newest = await saver.getTuple(config)
  const list = newest?.checkpoint.channel_values.list ?? []
  await save(newest, [...list, `${name}-${i}`])
}
await saver.close()
process.exit()

async function save(newest, list) {
  const version = (newest?.checkpoint.channel_versions.list ?? 0) + 1
  const id = uuid6(version % 16_000)
  const checkpoint = {
    v: 4,
    id,
    ts: new Date().toISOString(),
    channel_values: { list, text: 'x'.repeat(500) },
    channel_versions: { list: version, text: 1 },
    versions_seen: {},
  }
  const newVersions = newest ? { list: version } : { list: version, text: 1 }
  const at = await saver.put(
    newest?.config ?? config,
    checkpoint,
    { source: 'loop', step: version, parents: {} },
    newVersions,
  )
  await saver.putWrites(at, [['list', list.at(-1)]], name)
  say({ id, parent: newest?.checkpoint.id, list })
}
