import { type Command, text } from '../../command.js'
import { EXIT } from '../../exit-codes.js'
import { chooseProgram, loadPrograms } from '../../input/load-programs.js'
import { clean } from '../../screen/output.js'
import { Progress } from '../../screen/progress.js'
import { formatThreadId } from '../../input/thread-id.js'
import { listAll } from '../maintenance/verify.js'

/** Brings the states of a program's threads up to its version, instead of when each is next run. */
export const run: Command = async (context, [file = ''], options) => {
  const programs = await loadPrograms(context, file)
  const hf = await context.open()
  const { output } = context
  const program = chooseProgram(programs, text(options, 'program'))
  const dryRun = options['dryRun'] === true
  const name = program.plan.name
  const threads = (await listAll(hf)).filter(({ metadata }) => metadata['holdfast.program'] === name)
  const progress = new Progress(output, dryRun ? 'checking' : 'migrating', threads.length)
  const migrated: { thread: string; branch: string; from: number; to: number }[] = []
  const failed: { thread: string; branch: string; error: string }[] = []
  for (const { thread, branch } of threads) {
    const report = await hf.migrate(program, { dryRun, query: { thread, branch } })
    progress.step()
    const id = formatThreadId(thread)
    migrated.push(...report.migrated.map(({ from, to }) => ({ thread: id, branch, from, to })))
    failed.push(
      ...report.failed.map(({ error }) => ({
        thread: id,
        branch,
        error: error instanceof Error ? error.message : String(error),
      })),
    )
  }
  progress.end()
  if (output.json) output.document({ program: name, dryRun, checked: threads.length, migrated, failed })
  else {
    for (const { thread, branch, from, to } of migrated) output.line(`${thread} (${branch}) state ${from} -> ${to}`)
    for (const { thread, branch, error } of failed) {
      output.line(`${output.paint('red', 'failed')} ${thread} (${branch}): ${clean(error)}`)
    }
    const verb = dryRun ? 'to migrate' : 'migrated'
    output.line(`${threads.length} checked, ${migrated.length} ${verb}, ${failed.length} failed`)
  }
  return failed.length > 0 ? EXIT.failed : EXIT.ok
}
