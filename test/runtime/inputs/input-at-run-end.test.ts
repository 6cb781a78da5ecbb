import { graph, Holdfast, last, openHoldfast, START } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { until } from '../../support/until.js'

const note = graph({ name: 'note', version: '1.0.0', state: { text: last<string>(), seen: last<string>() } })
  .node('look', ({ text }) => ({ seen: text }))
  .edge(START, 'look')

describe('input that comes while a run of one step ends', () => {
  it('finds the thread let go by the entry that ended the run: there is no moment between the two', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(note, 't')
    await thread.enqueue({ text: 'one' }, { key: '1' })
    await using _ = hf.worker({ programs: [note], pollMs: 10, handleSignals: false })
    await thread.waitFor({ timeoutMs: 10_000 })
    await until(async () => (await hf.threads()).threads[0]?.claimedBy === null)
    const kinds = (await thread.history({ all: true })).map(({ kind }) => kind)
    expect(kinds).toEqual(['step', 'resume', 'input'])
  })

  it('is taken up also when it comes between the last entry but one and the last', async () => {
    const driver = await openDriver('memory:')
    let before: (() => Promise<unknown>) | undefined
    const late: Driver = new Proxy(driver, {
      get(target, name) {
        const value = Reflect.get(target, name, target) as unknown
        if (typeof value !== 'function') return value
        if (name !== 'append') return value.bind(target)
        return async (batch: Parameters<Driver['append']>[0]) => {
          // Only the owner's last word lets go of the thread.
          const leave = batch.some(({ lease }) => lease.kind === 'release') ? before : undefined
          if (leave !== undefined) {
            before = undefined
            await leave()
          }
          return target.append(batch)
        }
      },
    })
    await using other = new Holdfast(new LogStore(driver))
    await using hf = new Holdfast(new LogStore(late))
    before = () => other.thread(note, 't').enqueue({ text: 'two' }, { key: '2' })
    await hf.thread(note, 't').enqueue({ text: 'one' }, { key: '1' })
    await using _ = hf.worker({ programs: [note], pollMs: 10, handleSignals: false })
    await until(async () => (await hf.thread(note, 't').state())?.seen === 'two')
  })
})
