import { append, type Context, END, graph, last, reduced, START } from 'holdfast'

/** One thing a script asks for: a read, an effect, a question, or steps side by side. */
export type Deed = 'read' | 'pay' | 'ask' | 'both'

/** The outside world: how often each effect happened, by branch and place. */
export type Payments = Map<string, number>

type Seen = { readonly script: readonly Deed[]; readonly at: number }

const sum = () => reduced(undefined, (old: number, more: number) => old + more, { initial: 0 })
const SHARED = {
  /** Every deed of every input so far. */
  script: append<Deed>(),
  /** How many of them are done. */
  at: sum(),
  note: last<string>(undefined, { initial: '' }),
}

/** Does one deed of its script after the other, and writes down what came of each: version 1 in `log`. */
export function oldProgram(payments: Payments) {
  return graph({ name: 'script', version: '1.0.0', state: { ...SHARED, log: append<string>() } })
    .node('work', async (state, ctx) => ({ log: await doDeed(payments, state, ctx), at: 1 }))
    .edge(START, 'work')
    .branch('work', ({ script, at }) => (at < script.length ? 'work' : END), ['work', END])
}

/** The same with a newer state: `journal`, in which a migration leaves a mark. */
export function newProgram(payments: Payments) {
  return graph({
    name: 'script',
    version: '1.1.0',
    stateVersion: 2,
    migrations: {
      2: ({ log, ...rest }) => ({ ...rest, journal: [...((log as readonly string[] | undefined) ?? []), MIGRATED] }),
    },
    state: { ...SHARED, journal: append<string>() },
  })
    .node('work', async (state, ctx) => ({ journal: await doDeed(payments, state, ctx), at: 1 }))
    .edge(START, 'work')
    .branch('work', ({ script, at }) => (at < script.length ? 'work' : END), ['work', END])
}

export const MIGRATED = 'migrated'

async function doDeed(payments: Payments, { script, at }: Seen, ctx: Context): Promise<string> {
  switch (script[at]) {
    case 'pay':
      return ctx.step('pay', { effect: 'once', input: at, retry: { attempts: 1 } }, () => {
        const place = `${ctx.branch}:${at}`
        payments.set(place, (payments.get(place) ?? 0) + 1)
        return `paid ${at}`
      })
    case 'ask':
      return `told ${String(await ctx.pause<number>({ at }))}`
    case 'both': {
      const [one, two] = await Promise.all([ctx.step('one', () => 'a'), ctx.step('two', () => 'b')])
      return `${one}${two} ${at}`
    }
    default:
      return `read ${at}`
  }
}
