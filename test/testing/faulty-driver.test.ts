import { Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { faultyDriver } from 'holdfast/testing'
import { expect, it } from 'vitest'

it('says of a store behind it what that says of itself', async () => {
  const store = await openDriver('memory:')
  const hf = new Holdfast(new LogStore(faultyDriver(store)))
  expect(hf.survives).toEqual(store.survives)
  expect(hf.capabilities).toEqual(store.capabilities)
  await hf.close()
  await store.close()
})
