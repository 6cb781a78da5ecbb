import { flow, openHoldfast } from 'holdfast'
import { expect, it } from 'vitest'

it('takes up nothing that came after many others which still wait', async () => {
  await using hf = await openHoldfast('memory:')
  const quick = flow({ name: 'quick', version: '1.0.0' }, async () => 'done')
  const due = Array.from({ length: 100 }, (_, i) => `t-${String(i).padStart(3, '0')}`)
  for (const id of due) await hf.thread(quick, id).enqueue(1)
  const taken: string[] = []
  await new Promise<void>((resolve) => {
    hf.worker({
      programs: [quick],
      concurrency: 1,
      pollMs: 1,
      handleSignals: false,
      onEvent: ({ type, log }) => {
        if (type === 'taken') taken.push(/"(.*)"/.exec(log ?? '')?.[1] as string)
        if (type === 'ended' && taken.length === due.length) resolve()
      },
    })
  })
  const left = [...due]
  for (const id of taken) {
    // Not strictly in order: workers that look at the same moment would all go for the same one.
    expect(left.indexOf(id)).toBeLessThan(25)
    left.splice(left.indexOf(id), 1)
  }
})
