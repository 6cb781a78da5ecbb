import type { Driver } from 'holdfast/driver'

/** A driver as one process sees it: when the process dies, no call comes back any more. */
export interface MortalDriver {
  readonly driver: Driver
  /** Resolves when it died. */
  readonly died: Promise<'died'>
  /** Dies at the nth call from now on, before the store did it or after. */
  dieAt(call: number, moment: 'before' | 'after'): void
  spare(): void
}

export function mortalDriver(store: Driver): MortalDriver {
  let left = Number.POSITIVE_INFINITY
  let moment: 'before' | 'after' = 'before'
  let dead = false
  let die: (said: 'died') => void = () => {}
  const died = new Promise<'died'>((resolve) => {
    die = resolve
  })
  const end = (): Promise<never> => {
    dead = true
    die('died')
    return new Promise(() => {})
  }
  const call = async (run: () => unknown): Promise<unknown> => {
    if (dead) return new Promise(() => {})
    const last = --left === 0
    if (last && moment === 'before') return end()
    const result = await run()
    return dead || last ? end() : result
  }
  const driver = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      const method = value as (...args: unknown[]) => unknown
      // These wait for nothing and are no calls of the store. The dead tell nobody anything.
      if (name === 'hasSubscribers' || name === 'watchChanges') return method.bind(target)
      if (name === 'publish') return (...args: unknown[]) => (dead ? undefined : method.apply(target, args))
      return (...args: unknown[]) => call(() => method.apply(target, args))
    },
  })
  return {
    driver,
    died,
    dieAt(nth, when) {
      left = nth
      moment = when
    },
    spare() {
      left = Number.POSITIVE_INFINITY
    },
  }
}
