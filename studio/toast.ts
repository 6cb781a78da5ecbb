import { signal } from '@preact/signals'
import { explain } from './api.js'

export interface Toast {
  readonly id: number
  readonly text: string
  readonly tone: 'good' | 'bad'
}

/** Grows with everything that was done here, so that what counts it can look again. */
export const done = signal(0)

const MOST = 3

export const toasts = signal<readonly Toast[]>([])
let last = 0

/** Says something for a while. Failures stay until they are taken away. */
export function say(text: string, tone: Toast['tone'] = 'good'): void {
  const id = ++last
  toasts.value = [...toasts.peek(), { id, text, tone }].slice(-MOST)
  if (tone === 'good') setTimeout(() => dismiss(id), 6000)
}

export function dismiss(id: number): void {
  toasts.value = toasts.peek().filter((toast) => toast.id !== id)
}

/** Does something and says what came of it. Returns whether it went well. */
export async function attempt(work: () => Promise<unknown>, said?: string): Promise<boolean> {
  try {
    await work()
    done.value++
    if (said !== undefined) say(said)
    return true
  } catch (error) {
    say(explain(error), 'bad')
    return false
  }
}
