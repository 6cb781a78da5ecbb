import { signal } from '@preact/signals'

/** Moves on now and then, so that ages on the page do. */
export const now = signal(Date.now())
setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 5000)

const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
]

/** A stretch of time in one unit, or two where the first is small. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  for (const [i, [name, unit]] of UNITS.entries()) {
    if (ms < unit) continue
    const whole = Math.floor(ms / unit)
    const next = UNITS[i + 1]
    const rest = next && whole < 10 ? Math.floor((ms % unit) / next[1]) : 0
    return rest > 0 && next ? `${whole} ${name} ${rest} ${next[0]}` : `${whole} ${name}`
  }
  return ''
}

/** How long ago, for lists. */
export function ago(at: string | number): string {
  const ms = now.value - new Date(at).getTime()
  if (ms < 5000) return 'now'
  const [name, unit] = UNITS.find(([, one]) => ms >= one) ?? ['s', 1000]
  return `${Math.floor(ms / unit)} ${name} ago`
}

export function clock(at: string | number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium', hour12: false })
}

export function time(at: string | number): string {
  return new Date(at).toLocaleTimeString(undefined, {
    hour12: false,
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  })
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`
  if (count < 1024 * 1024) return `${(count / 1024).toFixed(1)} KB`
  return `${(count / 1024 / 1024).toFixed(1)} MB`
}

export function number(value: number): string {
  if (Math.abs(value) >= 1_000_000) return `${(value / 1_000_000).toFixed(1)} M`
  if (Math.abs(value) >= 10_000) return `${(value / 1000).toFixed(1)} k`
  return value.toLocaleString('en-US', { maximumFractionDigits: 2 })
}

/** Money in no currency: prices are in whichever the agent's author had in mind. */
export function cost(value: number): string {
  return value === 0 ? '0' : value < 0.01 ? value.toFixed(5) : value.toFixed(2)
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`
}

/** What can't be seen, or turns the reading direction around: shown as what it is, it can't pretend to be something else. */
// oxlint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

/** Text of others, made safe for the eye. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (char) => {
    const code = char.charCodeAt(0)
    if (code < 0x20) return String.fromCharCode(0x2400 + code)
    if (code === 0x7f) return '\u2421'
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, '0')}\u27e9`
  })
}

/** A thread's id for people. */
export function nameOf(thread: string | Readonly<Record<string, string>>): string {
  if (typeof thread === 'string') return visible(thread)
  return visible(
    Object.entries(thread)
      .map(([name, value]) => `${name}=${value}`)
      .join(' · '),
  )
}

/** A value in one line. */
export function brief(value: unknown, length = 120): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return visible(text.length > length ? `${text.slice(0, length)}…` : text)
}
