import { TooLargeError } from 'holdfast/errors'
import { emptyFold } from '#src/log/entry/fold.js'
import { set } from '#src/log/entry/ops.js'
import type { RunClaim } from '#src/runtime/run/record/run-claim.js'
import { RunLog } from '#src/runtime/run/record/run-log.js'
import { expect, it } from 'vitest'

it('holds an effect back until its intent is written, although a step that took the intent along was refused', async () => {
  const fold = emptyFold('incarnation')
  const written: string[] = []
  let isRefusing = true
  const claim = {
    log: { fold },
    post: (decide: Parameters<RunClaim['post']>[0], { resolve, reject }: Parameters<RunClaim['post']>[1]) => {
      const drafts = decide(fold) ?? []
      queueMicrotask(() => {
        if (isRefusing) {
          isRefusing = false
          reject(new TooLargeError('The entry', 'bytes', 1, 2, 'Store less.'))
          return
        }
        for (const { ops = [] } of drafts) written.push(...ops.map(([, path]) => path.join('/')))
        resolve({ entries: [], fold })
      })
    },
  } as unknown as RunClaim
  const log = new RunLog(claim, { frequency: 'step', durability: 'sync' }, () => {})
  log.add({ kind: 'effect', ops: [set(['steps', 'charge'], 'started')] })
  const refused = log.record({ kind: 'step', ops: [set(['steps', 'large'], 'done')] })
  const barrier = log.barrier().then(() => [...written])
  await expect(refused).rejects.toThrow(TooLargeError)
  expect(await barrier).toEqual(['steps/charge'])
})
