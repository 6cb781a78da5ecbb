import { InvalidOptionError } from '../../../core/errors.js'
import type { ThreadIdInput } from '../../../core/ids.js'
import { nameLog } from '../../../core/log-name.js'
import { mapSome } from '../../../core/map-some.js'
import { checkOptionNames, type OptionNames } from '../../../core/wording/option-names.js'
import type { LogKey } from '../../../log/contract.js'
import { planOf } from '../../program/check-program.js'
import type { ProgramPlan } from '../../program/program.js'
import { enqueueInput } from './enqueue.js'
import type { RuntimeEnvironment } from '../environment.js'
import { ENQUEUE_OPTIONS, type Enqueued, type EnqueueOptions } from '../request/run-options.js'

/** One of many inputs to leave for workers. */
export interface BulkInput extends EnqueueOptions {
  readonly program: { readonly plan: ProgramPlan }
  readonly thread: ThreadIdInput
  readonly input: unknown
  readonly branch?: string
}

/** The outcome of one of many inputs: `enqueued`, or the `error` because of which none of it was queued. */
export interface BulkEnqueued {
  readonly thread: ThreadIdInput
  readonly enqueued?: Enqueued
  /** As `thread.enqueue` would throw it. The others are not affected. */
  readonly error?: unknown
}

/** How many inputs are queued together. */
export interface BulkEnqueueOptions {
  /**
   * Called with each one as its outcome is known, with its position in the list. What it throws stops nothing and is
   * dropped.
   */
  readonly onEnqueued?: (result: BulkEnqueued, index: number) => void
}

/** How many are looked up at once, and written together. */
const AT_ONCE = 1000

const BULK_INPUT: OptionNames<BulkInput> = {
  ...ENQUEUE_OPTIONS,
  program: true,
  thread: true,
  input: true,
  branch: true,
}

/**
 * Leaves many inputs for workers with few round trips: new threads are not read, and their first entries are sent
 * together. Each is queued or refused on its own; the results are in the order of the inputs. Inputs for the same
 * thread keep their order.
 */
export async function enqueueAll(
  environment: RuntimeEnvironment,
  items: readonly BulkInput[],
  keyOf: (item: BulkInput) => LogKey,
  { onEnqueued }: BulkEnqueueOptions,
): Promise<readonly BulkEnqueued[]> {
  if (!Array.isArray(items))
    throw new InvalidOptionError('items', 'must be an array', 'Pass [{ program, thread, input }].')
  for (const [i, item] of items.entries()) checkItem(item, `items[${i}]`)
  const results: BulkEnqueued[] = new Array(items.length)
  const tell = (index: number, result: BulkEnqueued) => {
    results[index] = result
    try {
      onEnqueued?.(result, index)
    } catch {}
  }
  for (let start = 0; start < items.length; start += AT_ONCE) {
    const threads = new Map<string, { readonly key: LogKey; readonly places: number[] }>()
    for (let i = start; i < Math.min(items.length, start + AT_ONCE); i++) {
      const item = items[i] as BulkInput
      try {
        const key = keyOf(item)
        const known = threads.get(nameLog(key))
        if (known) known.places.push(i)
        else threads.set(nameLog(key), { key, places: [i] })
      } catch (error) {
        tell(i, { thread: item.thread, error })
      }
    }
    const groups = [...threads.values()]
    // A store that is down affects each one separately: all of them are tried, and report it.
    const fresh = await environment.logs.findNew(groups.map(({ key }) => key)).catch(() => new Set<LogKey>())
    await mapSome(groups, AT_ONCE, async ({ key, places }) => {
      let isNew = fresh.has(key)
      for (const i of places) {
        const { program, thread, input, branch: _, ...options } = items[i] as BulkInput
        try {
          tell(i, {
            thread,
            enqueued: await enqueueInput(environment, program.plan, key, input, { ...options, isNew }),
          })
        } catch (error) {
          tell(i, { thread, error })
        }
        isNew = false
      }
    })
  }
  return results
}

/** What nobody could act on is refused before anything is written, and the error says which one it is. */
function checkItem(item: BulkInput, name: string): void {
  checkOptionNames(name, item ?? null, BULK_INPUT)
  planOf(`${name}.program`, item.program)
  if (item.thread === undefined || item.thread === null) {
    throw new InvalidOptionError(`${name}.thread`, 'is missing', 'Name the thread that the input is for.')
  }
}
