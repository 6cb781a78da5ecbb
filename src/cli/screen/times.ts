import { usageError } from '../cli-error.js'

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/** `90s`, `15m`, `2h`, `7d`: milliseconds. */
export function parseDuration(text: string, option: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/.exec(text)
  if (!match) throw usageError(`${option} ${JSON.stringify(text)} is not a duration.`, 'Write 30s, 15m, 2h or 7d.')
  return Number(match[1]) * (UNITS[match[2] as string] as number)
}

/** `3m`, `2h`, `5d`: how long ago, or how long until. */
export function briefDuration(ms: number): string {
  const left = Math.abs(ms)
  if (left < 1000) return `${Math.round(left)}ms`
  if (left < 60_000) return `${Math.round(left / 1000)}s`
  if (left < 3_600_000) return `${Math.round(left / 60_000)}m`
  if (left < 172_800_000) return `${Math.round(left / 3_600_000)}h`
  return `${Math.round(left / 86_400_000)}d`
}

/** For a person who looks now: `3m ago`. */
export function ago(date: Date, now = Date.now()): string {
  const ms = now - date.getTime()
  return ms < 0 ? `in ${briefDuration(ms)}` : `${briefDuration(ms)} ago`
}

export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${Math.round(bytes)} B`
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}

export function parseCount(text: string, option: string, most = 10_000): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && count >= 1 && count <= most) return count
  throw usageError(`${option} is ${JSON.stringify(text)}.`, `Pass a whole number from 1 to ${most}.`)
}

/** A moment: `2026-12-01T09:00Z`, or a duration from now such as `2h`. */
export function parseTime(text: string, option: string, now = Date.now()): Date {
  if (/^\d+(?:\.\d+)?(?:ms|s|m|h|d|w)$/.test(text)) return new Date(now + parseDuration(text, option))
  const time = /^\d{4}-/.test(text) ? new Date(text) : new Date(Number.NaN)
  if (!Number.isNaN(time.getTime())) return time
  throw usageError(
    `${option} ${JSON.stringify(text)} is not a time.`,
    'Write 2026-12-01T09:00Z, or 2h for two hours from now.',
  )
}
