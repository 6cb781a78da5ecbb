import { type Command, text } from '../../command.js'
import { readJson } from '../../input/json-input.js'
import { clean } from '../../screen/output.js'
import { parseScope } from '../../input/thread-id.js'
import { parseDuration } from '../../screen/times.js'

/** Writes one item of the shared memory. */
export const run: Command = async (context, [scope = '', collection = '', key = '', value = ''], options) => {
  const where = parseScope(scope)
  const content = await readJson(context, value, 'the value')
  const ttl = text(options, 'ttl')
  const expect = text(options, 'expect')
  const hf = await context.open({ create: true })
  const { output } = context
  const written = await hf.store
    .scope(where)
    .collection<unknown>(collection)
    .put(key, content, {
      ...(ttl === undefined ? {} : { ttlMs: parseDuration(ttl, '--ttl') }),
      ...(expect === undefined ? {} : { expect: expect === 'none' ? null : expect }),
    })
  if (output.json) output.document(written)
  else output.line(`${clean(written.key)} version ${written.version}`)
}
