import { type Signal, signal, useSignalEffect } from '@preact/signals'
import { useMemo, useRef } from 'preact/hooks'
import { explain } from './api.js'

/** Something that is read from the server, and read again. */
export interface Resource<Value> {
  readonly value: Signal<Value | undefined>
  readonly error: Signal<string | undefined>
  readonly loading: Signal<boolean>
  readonly reload: () => Promise<void>
}

/**
 * Reads something, again when a signal changes that `read` looks at before it first waits, and every `everyMs` while the
 * page can be seen. What was read last stays until there is something newer.
 */
export function useResource<Value>(
  read: () => Promise<Value> | undefined,
  options: { readonly everyMs?: number } = {},
): Resource<Value> {
  const latest = useRef(read)
  latest.current = read
  const made = useMemo(() => {
    const value = signal<Value | undefined>(undefined)
    const error = signal<string | undefined>(undefined)
    const loading = signal(false)
    let turn = 0
    const take = async (asked: Promise<Value> | undefined) => {
      if (asked === undefined) return
      const own = ++turn
      loading.value = true
      try {
        const got = await asked
        if (own !== turn) return
        value.value = got
        error.value = undefined
      } catch (failure) {
        if (own === turn) error.value = explain(failure)
      } finally {
        if (own === turn) loading.value = false
      }
    }
    return { value, error, loading, take, reload: () => take(latest.current()), busy: () => loading.peek() }
  }, [])
  useSignalEffect(() => {
    void made.take(read())
    const { everyMs } = options
    if (everyMs === undefined) return undefined
    const timer = setInterval(() => {
      if (!document.hidden && !made.busy()) void made.reload()
    }, everyMs)
    return () => clearInterval(timer)
  })
  return made
}
