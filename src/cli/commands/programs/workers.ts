import type { WorkerInfo } from '../../../types.js'
import type { Command } from '../../command.js'
import { brief, type Cell, clean, type Paint } from '../../screen/output.js'
import { ago } from '../../screen/times.js'

/** The workers of the store, what each runs, and when it was last seen. */
export const run: Command = async (context) => {
  const hf = await context.open()
  const { output } = context
  const workers = await hf.workers()
  if (output.json) return output.document({ workers })
  if (workers.length === 0) return output.note('No worker was seen in the last hour.')
  await output.table(
    ['worker', 'host', 'pid', 'version', 'programs', 'busy', 'state', 'since', 'seen'],
    workers.map((worker): readonly Cell[] => [
      brief(worker.name, 60),
      brief(worker.host, 60),
      worker.pid,
      clean(worker.version ?? ''),
      brief(describePrograms(worker), 80),
      `${worker.busy}/${worker.places}`,
      [worker.state, PAINTS[worker.state]],
      output.terminal ? ago(worker.since) : worker.since.toISOString(),
      output.terminal ? ago(worker.seen) : worker.seen.toISOString(),
    ]),
    { spare: ['host', 'version', 'since'], whole: ['worker', 'state', 'seen'] },
  )
}

const PAINTS: Readonly<Record<WorkerInfo['state'], Paint>> = { running: 'green', draining: 'yellow', dead: 'red' }

function describePrograms({ programs, tenant }: WorkerInfo): string {
  const names = programs.map(({ name, version }) => `${name} ${version}`).join(', ')
  return tenant === undefined ? names : `${names} (only ${tenant})`
}
