import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { MESSAGE_BYTES } from '../../log/contract.js'
import { makeAppend, mustAppend } from '../entries.js'
import { createLog, logKey, type SuiteTest } from './suite-context.js'

const newTopic = (): string => `test.${randomBytes(6).toString('hex')}`

/** What processes tell each other beside the logs, and where many logs end. */
export const newsTests: readonly SuiteTest[] = [
  {
    name: 'says where many logs end, in the order asked for',
    exempt: (driver) => (driver.positions ? undefined : 'it has no way to ask for many'),
    async run({ driver, tenant }) {
      const [one, two, missing] = [logKey(tenant, 'one'), logKey(tenant, 'two 🦀'), logKey(tenant, 'missing')]
      const first = await createLog(driver, one)
      let second = await createLog(driver, two)
      second = await mustAppend(driver, makeAppend(two, second))
      const found = await driver.positions?.([two, missing, one, two])
      const at = ({ incarnation, seq }: { incarnation: string; seq: number }) => ({ incarnation, seq })
      assert.deepEqual(found, [at(second), undefined, at(first), at(second)])
      assert.deepEqual(await driver.positions?.([]), [])
    },
  },
  {
    name: 'brings what others publish on a topic to those who subscribed, until they end it',
    timeoutMs: 300_000,
    exempt: (driver) => (driver.subscribe ? undefined : 'it has no messages'),
    async run({ driver, tenant, open }) {
      assert.ok(driver.capabilities.watch && driver.capabilities.messages)
      const other = await open()
      const [topic, otherTopic] = [newTopic(), newTopic()]
      const heard: string[] = []
      const heardElsewhere: string[] = []
      const end = await driver.subscribe?.(topic, (message) => message !== undefined && heard.push(message))
      await driver.subscribe?.(otherTopic, (message) => message !== undefined && heardElsewhere.push(message))
      const long = JSON.stringify('é'.repeat(3000)).padEnd(MESSAGE_BYTES - 3000, '.')
      // A message may be lost, and a writer learns only by an append that somebody listens.
      await publishUntil(other, topic, long, () => heard.includes(long), tenant)
      await end?.()
      heard.length = 0
      await publishUntil(other, otherTopic, 'there', () => heardElsewhere.includes('there'), tenant)
      other.publish?.(topic, 'gone')
      await publishUntil(other, otherTopic, 'after', () => heardElsewhere.includes('after'), tenant)
      assert.deepEqual(heard, [])
      assert.ok(heardElsewhere.every((message) => message === 'there' || message === 'after'))
    },
  },
  {
    name: 'ends one of two subscriptions and leaves the other, and passes over a message that is too long',
    timeoutMs: 300_000,
    exempt: (driver) => (driver.subscribe ? undefined : 'it has no messages'),
    async run({ driver, tenant, open }) {
      const other = await open()
      const topic = newTopic()
      const heard: string[] = []
      const listener = (message: string | undefined) => void (message !== undefined && heard.push(message))
      const endFirst = await driver.subscribe?.(topic, listener)
      await driver.subscribe?.(topic, listener)
      await endFirst?.()
      await endFirst?.()
      other.publish?.(topic, 'x'.repeat(MESSAGE_BYTES + 1))
      await publishUntil(other, topic, 'short', () => heard.includes('short'), tenant)
      assert.ok(heard.every((message) => message === 'short'))
    },
  },
  {
    name: 'notices that another wrote, where it can not tell what',
    timeoutMs: 300_000,
    exempt: (driver) => (driver.watchChanges ? undefined : 'it tells what was written, or nothing'),
    async run({ driver, tenant, open }) {
      const other = await open()
      const log = logKey(tenant)
      let changes = 0
      const end = driver.watchChanges?.(() => changes++)
      let at = await createLog(other, log)
      for (let tries = 0; changes === 0; tries++) {
        assert.ok(tries < 2000, 'the write of another driver is noticed')
        at = await mustAppend(other, makeAppend(log, at))
        await pause(20)
      }
      end?.()
    },
  },
]

/** Publishes until it was heard: messages may be lost, and somebody who listens is known of a moment later. */
async function publishUntil(
  driver: Parameters<SuiteTest['run']>[0]['driver'],
  topic: string,
  message: string,
  isHeard: () => boolean,
  tenant: Parameters<typeof logKey>[0],
): Promise<void> {
  const log = logKey(tenant, `writes to ${topic} ${message.slice(0, 10)}`)
  let at = await createLog(driver, log)
  for (let tries = 0; !isHeard(); tries++) {
    assert.ok(tries < 2000, `"${message.slice(0, 20)}" is heard`)
    at = await mustAppend(driver, makeAppend(log, at))
    driver.publish?.(topic, message)
    await pause(tries < 20 ? 10 : 50)
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
