import { join } from 'node:path'
import { type Holdfast, openHoldfast } from '../index.js'
import { InvalidOptionError } from '../errors.js'
import { type Child, startChild } from './child.js'
import { makeCustomers, stockFor } from './shop/customers.js'
import { rollDice } from './dice.js'
import { Fleet, type FleetWorker } from './fleet.js'
import { httpModel } from './http-model.js'
import { measure } from './measure.js'
import type { FromModel, ModelSettings, ToModel } from './shop/messages.js'
import { readBack } from './read-back.js'
import type { DemoReport } from './report.js'
import { openShop } from './shop/shop.js'
import { Storefront } from './shop/storefront.js'
import { makeSupport } from './shop/support-agent.js'
import { Takeovers } from './takeovers.js'

export interface DemoOptions {
  readonly store: string
  /** A Redis in front of the store, which must be Postgres then. */
  readonly cache?: string
  readonly tenant: string
  /** A folder that is there and empty: the shop's database goes there. */
  readonly folder: string
  /** The file of the store, when it is the demo's own. */
  readonly file?: string
  readonly sessions: number
  readonly workers: number
  /** 0: nobody is killed. */
  readonly killEveryMs: number
  readonly leaseMs: number
  /** How long the model takes, on average. */
  readonly latencyMs: number
  readonly seed: number
  /** What returns declare themselves to be. For showing that the count of doubles notices a wrong declaration. */
  readonly effect?: 'read' | 'reconcilable'
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: DemoProgress) => void
}

/** How far it is. */
export interface DemoProgress {
  readonly phase: 'opening' | 'open' | 'reading back'
  readonly elapsedMs: number
  readonly sessions: number
  readonly done: number
  readonly active: number
  readonly turns: number
  readonly turnsInAll: number
  readonly turnsPerSecond: number
  readonly workers: readonly FleetWorker[]
  readonly kills: number
  readonly takeovers: number
  /** Conversations of killed workers that nobody has picked up yet. */
  readonly orphans: number
  readonly takeoverMsP50: number | null
  readonly takeoverMsP99: number | null
  /** The worker that died last, and how many conversations it held. */
  readonly lastKill: { readonly name: string; readonly pid: number; readonly held: number } | null
  /** Conversations that were read back. */
  readonly checked: number
}

const PROGRESS_EVERY_MS = 250
/** Turns per second are those of the last few seconds. */
const RATE_OVER_MS = 3000
/** Conversations at the same time, and how many of them one worker takes. */
const AT_ONCE = 192
const PER_WORKER = 32
const SHOP_MS = { before: 15, after: 60 }
/** When nobody was answered for this long, the day is over as it is. */
const STUCK_MS = 60_000
const MOST_PROBLEMS = 10

/** Black Friday: customers talk, workers answer and are killed, and at the end everything is counted. */
export async function runDemo(options: DemoOptions): Promise<DemoReport> {
  const { store, tenant, folder, sessions, seed, signal, onProgress } = options
  const begun = Date.now()
  const customers = makeCustomers(sessions, seed)
  const turnsInAll = customers.reduce((sum, { turns }) => sum + turns.length, 0)
  const shopFile = join(folder, 'shop.db')
  const takeovers = new Takeovers()
  const troubles: string[] = []
  const recent: { readonly at: number; readonly turns: number }[] = []
  let phase: DemoProgress['phase'] = 'opening'
  let checked = 0
  let restartTokens = 0
  let lastKill: DemoProgress['lastKill'] = null

  const cached = options.cache === undefined ? {} : { cache: options.cache }
  const hf = await openHoldfast(store, cached)
  await refuseUsed(hf, tenant)
  const model: Child<ToModel, FromModel> = startChild('./model-process.js', {
    latencyMs: [Math.round(options.latencyMs * 0.4), Math.round(options.latencyMs * 1.6)],
  } satisfies ModelSettings)
  const { url: modelUrl } = await model.next('ready')
  const shop = await openShop(shopFile, stockFor(customers))
  const fleet = new Fleet(
    {
      store,
      tenant,
      shop: shopFile,
      modelUrl,
      concurrency: PER_WORKER,
      leaseMs: options.leaseMs,
      shopMs: SHOP_MS,
      ...cached,
      ...(options.effect === undefined ? {} : { effect: options.effect }),
    },
    {
      held(thread, at) {
        if (takeovers.taken(thread, at)) restartTokens += storefront.tokensOf(thread)
      },
      ended(thread, status, reply) {
        if (reply !== undefined) storefront.heard(thread, reply)
        else if (status !== 'stopped' && status !== 'busy') storefront.failed(thread, `ended as ${status}`)
      },
      killed(threads, at, worker) {
        takeovers.killed(threads, at)
        lastKill = { ...worker, held: threads.length }
      },
      trouble: (message) => troubles.push(message),
    },
  )
  const program = makeSupport({ model: httpModel(modelUrl, 'scripted-support'), shop })
  const storefront = new Storefront(hf.tenant(tenant), program, customers, {
    atOnce: AT_ONCE,
    onSettled: (thread) => takeovers.settled(thread),
  })
  const showing = setInterval(show, PROGRESS_EVERY_MS)
  try {
    show()
    await orAbort(fleet.start(options.workers), signal)
    phase = 'open'
    const opened = Date.now()
    await orAbort(spendDay(), signal)
    const seconds = (Date.now() - opened) / 1000
    await fleet.stop()
    model.send({ type: 'bill' })
    const bill = await model.next('bill')
    await hf.close()
    phase = 'reading back'
    const where = { store, tenant, shop: shopFile, seed }
    const findings = await orAbort(
      readBack(customers, where, (done) => {
        checked = done
      }),
      signal,
    )
    const measured = await measure(customers, findings.turns, { store, tenant, file: options.file, since: begun })
    show()
    return {
      store,
      tenant,
      seed,
      sessions,
      completed: findings.completed,
      lost: sessions - findings.completed,
      doubled: findings.doubled,
      kills: fleet.kills,
      takeovers: takeovers.count,
      takeoverMsP50: takeovers.quantile(0.5),
      takeoverMsP99: takeovers.quantile(0.99),
      turns: findings.turns,
      effects: findings.effects,
      tokensSpent: bill.tokens,
      tokensIfRestarted: bill.tokens + restartTokens,
      modelCalls: bill.calls,
      ...measured,
      chainsVerified: findings.chainsVerified,
      chainsSampled: findings.chainsSampled,
      seconds: Math.round(seconds * 10) / 10,
      turnsPerSecond: Math.round(findings.turns / seconds),
      example: takeovers.most ?? customers[0]?.thread ?? '',
      problems: [...findings.problems, ...storefront.failures, ...troubles].slice(0, MOST_PROBLEMS),
    }
  } finally {
    clearInterval(showing)
    storefront.close()
    await fleet.abandon()
    model.process.kill('SIGKILL')
    await model.ended
    shop.close()
    await hf.close()
  }

  async function spendDay(): Promise<void> {
    const { killEveryMs } = options
    const dice = rollDice(seed, 'kill')
    let due = Date.now() + killEveryMs
    const kill = () => {
      // Where starting a worker takes longer than that, the next kill waits for it: otherwise nobody would ever work.
      if (Date.now() < due || !fleet.whole) return
      due = Date.now() + killEveryMs
      fleet.killOne(dice)
    }
    const killing = killEveryMs > 0 ? setInterval(kill, Math.min(50, killEveryMs)) : undefined
    let watching: ReturnType<typeof setInterval> | undefined
    const stuck = new Promise<void>((resolve) => {
      watching = setInterval(() => {
        if (Date.now() - storefront.heardAt > STUCK_MS) {
          troubles.push(`Nobody was answered for ${STUCK_MS / 1000} s.`)
          resolve()
        }
      }, 1000)
    })
    try {
      await Promise.race([storefront.open(), stuck])
    } finally {
      clearInterval(killing)
      clearInterval(watching)
      storefront.close()
    }
  }

  function show(): void {
    const now = Date.now()
    recent.push({ at: now, turns: storefront.turns })
    while ((recent[0]?.at ?? now) < now - RATE_OVER_MS) recent.shift()
    const { at, turns } = recent[0] ?? { at: now, turns: 0 }
    onProgress?.({
      phase,
      elapsedMs: now - begun,
      sessions,
      done: storefront.done,
      active: storefront.active,
      turns: storefront.turns,
      turnsInAll,
      turnsPerSecond: now > at ? ((storefront.turns - turns) / (now - at)) * 1000 : 0,
      workers: fleet.workers,
      kills: fleet.kills,
      takeovers: takeovers.count,
      orphans: takeovers.waiting,
      takeoverMsP50: takeovers.quantile(0.5),
      takeoverMsP99: takeovers.quantile(0.99),
      lastKill,
      checked,
    })
  }
}

/** Conversations of another day would be taken for this one's. */
async function refuseUsed(hf: Holdfast, tenant: string): Promise<void> {
  const { threads } = await hf.tenant(tenant).threads({ limit: 1 })
  if (threads.length === 0) return
  await hf.close()
  throw new InvalidOptionError('tenant', `"${tenant}" has threads already`, 'Pass another --tenant, or leave it out.')
}

/** What is waited for, or the reason for which nobody waits anymore. */
async function orAbort<Result>(work: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  if (signal === undefined) return work
  signal.throwIfAborted()
  let leave = () => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    leave = () => reject(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
