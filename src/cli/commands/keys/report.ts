import type { Holdfast } from '../../../index.js'
import type { Options } from '../../command.js'
import type { CommandContext } from '../../context.js'

type KeyStatus = Awaited<ReturnType<Holdfast['keys']['status']>>

/** Prints the data keys of one tenant: never a secret, only names and times. */
export async function showKeys({ output }: CommandContext, status: KeyStatus): Promise<void> {
  if (output.json) {
    output.document(status)
    return
  }
  const { current, dataKeys, plainUntil } = status
  if (dataKeys.length === 0) {
    output.note('No data key yet: the first write makes one.')
    return
  }
  const rows = dataKeys.map(({ id, createdAt, master }) => [
    id,
    id === current ? 'current' : 'reads only',
    master,
    createdAt.toISOString(),
  ])
  await output.table(['key', 'use', 'master', 'created'], rows, { whole: ['key', 'master'] })
  if (plainUntil)
    output.note(`What was written before ${plainUntil.toISOString()} may lack a key; see keys.adoptPlain.`)
}

/** Does something to the keys of this tenant, or of every tenant with --all-tenants, and prints what there is then. */
export async function changeKeys(
  context: CommandContext,
  options: Options,
  change: (hf: Holdfast) => Promise<KeyStatus>,
): Promise<void> {
  const hf = await context.open()
  if (options['allTenants'] !== true) {
    await showKeys(context, await change(hf))
    return
  }
  const { output } = context
  const done: object[] = []
  for (const tenant of await hf.tenants()) {
    const view = hf.tenant(tenant)
    // A first key locks out processes that have none: a tenant gets it when it is written to, not as a side effect.
    if ((await view.keys.status()).dataKeys.length === 0) continue
    const { current, dataKeys } = await change(view)
    const masters = [...new Set(dataKeys.map(({ master }) => master))]
    done.push({ tenant, current, dataKeys: dataKeys.length, masters })
    if (!output.json)
      output.line(`${tenant}\t${current ?? ''}\t${dataKeys.length} data keys under ${masters.join(', ')}`)
  }
  if (output.json) output.document({ tenants: done })
  else if (done.length === 0) output.note('No tenant of this store has a data key yet.')
}
