import { hashValue } from '#src/runtime/step/record/hash-value.js'
import { type Context, flow } from 'holdfast'
import { type Input, NAME, ownKeyOf, policyOf, type Program, type Surroundings } from './surroundings.js'
import type { StatementSpec } from './spec.js'
import type { Place } from './world.js'

export interface Scene extends Surroundings {
  readonly ctx: Context
  readonly n: number
  readonly rounds: string
  readonly mark: string
  readonly outer: string
}

export const SHARED = 'shared'
const LATE = 'late'
/** Longer than what an id of a step once was cut to: two that differ at the end are two. */
const LONG = '長'.repeat(70)

export function buildFlow(body: readonly StatementSpec[], around: Surroundings, version: string): Program {
  return flow<Input, unknown>({ name: NAME, version }, (ctx, { n }) =>
    runAll(body, { ...around, ctx, n, rounds: '', mark: '', outer: '' }),
  )
}

export async function runAll(body: readonly StatementSpec[], scene: Scene): Promise<unknown[]> {
  const results: unknown[] = []
  for (const statement of body) results.push(await runStatement(statement, scene))
  return results
}

async function runStatement(statement: StatementSpec, scene: Scene): Promise<unknown> {
  const { rounds, world, process } = scene
  switch (statement.kind) {
    case 'step':
      return runStep(statement, scene)
    case 'all':
      return runSideBySide(statement, scene)
    case 'loop': {
      const results: unknown[] = []
      for (let i = 0; i < statement.times; i++) {
        results.push(await runAll(statement.body, { ...scene, rounds: `${rounds}-${i}` }))
      }
      return results
    }
    case 'think':
      await process.clock.sleep(statement.ms)
      return 'thought'
    case 'sleep': {
      const place = placeOf(statement, scene)
      world.waits.fallsAsleep(place)
      const options = statement.keyed === false ? {} : { key: `${statement.id}r${rounds}` }
      await scene.ctx.sleep(statement.ms, options).catch((error: unknown) => world.refuses(error))
      world.waits.wakes(place, statement.ms)
      return 'slept'
    }
    case 'receive':
      return receive(statement, scene)
    default:
      return ask(statement, scene)
  }
}

/** Names a place of the program, in one round of its loops and for one input, for the world. */
function placeOf({ id }: StatementSpec, { n, rounds, mark, process }: Scene): string {
  return `${process.era}/${n}:${id}${rounds}${mark}`
}

function runStep(statement: StatementSpec & { kind: 'step' }, scene: Scene): Promise<unknown> {
  const { work, caught, id, longKey } = statement
  const { ctx, rounds, world, process } = scene
  if (work.gone) return Promise.resolve('gone')
  const name = `${id}${work.name ?? ''}`
  const key = `${longKey ? LONG : ''}r${rounds}`
  const at = placeOf(statement, scene)
  const input = `${at}${work.input ?? ''}`
  const place: Place = {
    name: at,
    record: { input: hashValue(input), name },
    mark: scene.mark,
    outer: scene.outer,
    told: (result) => result,
  }
  const policy = { ...policyOf(work, scene, caught), ...ownKeyOf(work, at) }
  const done = ctx.step(name, { ...policy, key, input }, async (step) => {
    if (work.store && work.effect === 'read')
      await step.store.scope({ simulation: world.thread }).collection('c').put(at, { by: at })
    return world.call(process, place, work, step)
  })
  if (!caught) return done
  return done.catch((error: Error) => {
    // The run itself is over; not a failure of the step.
    if (ctx.abortSignal.aborted) throw error
    return 'caught'
  })
}

async function runSideBySide({ parts, joined }: StatementSpec & { kind: 'all' }, scene: Scene): Promise<unknown> {
  // In the order of the first version, whatever the order in which they are started.
  const inOrder = (results: readonly unknown[]) =>
    parts.map((part, i) => [part.id, results[i]] as const).sort(([a = ''], [b = '']) => (a < b ? -1 : 1))
  const running = parts.map((part) => runStatement(part, scene))
  if (joined === undefined || joined === 'as-is') return inOrder(await Promise.all(running))
  const settled = await Promise.allSettled(running)
  const failed = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  if (failed.length === 0) return inOrder(settled.map((one) => (one as PromiseFulfilledResult<unknown>).value))
  throw joined === 'settled' ? new Error('some parts failed') : new AggregateError(failed, 'some parts failed')
}

async function receive(statement: StatementSpec & { kind: 'receive' }, scene: Scene): Promise<unknown> {
  const { world, ctx, rounds } = scene
  const place = placeOf(statement, scene)
  const { inTime, shared, keyed } = statement
  const name = shared ? SHARED : place.replaceAll('/', ' ')
  if (inTime) world.wanted.add(name)
  const options = {
    ...(inTime ? {} : { timeoutMs: 30_000 }),
    ...(keyed === false ? {} : { key: `${statement.id}r${rounds}` }),
  }
  const got = await ctx.receive(name, options).catch((error: unknown) => world.refuses(error))
  if (got === undefined && inTime) world.waits.gotNothing(place)
  if (got === undefined) return 'nothing'
  world.waits.got(place, got)
  return shared ? 'something' : got
}

async function ask(statement: StatementSpec & { kind: 'pause' }, scene: Scene): Promise<unknown> {
  const { world, ctx, rounds } = scene
  const { id, inTime, same, keyed, words } = statement
  const place = placeOf(statement, scene)
  const question = same ? { same, words: words ?? null } : { at: id, rounds, inTime, words: words ?? null }
  const options = {
    ...(keyed === false ? {} : { key: `${id}r${rounds}` }),
    ...(inTime ? {} : { expiresInMs: 60_000, onExpire: { answer: LATE } }),
  }
  const got = await ctx.pause(question, options).catch((error: unknown) => world.refuses(error))
  if (got === LATE) return LATE
  // A question that is worded otherwise today is another question, whose answer may be another.
  world.waits.got(words === undefined ? place : `${place}, ${words}`, got)
  return 'an answer'
}
