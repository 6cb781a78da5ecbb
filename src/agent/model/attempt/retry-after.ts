/**
 * How long a reply asks to wait, in milliseconds: `retry-after-ms`, else `retry-after` in seconds or as an HTTP date,
 * which is measured against `now`. Undefined if it does not say, or can't be read.
 */
export function readRetryAfter(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  const exact = parseNumber(headers['retry-after-ms'])
  if (exact !== undefined) return exact
  const text = headers['retry-after']
  const seconds = parseNumber(text)
  if (seconds !== undefined) return seconds * 1000
  const date = text === undefined || !/[a-z]{3}/i.test(text) ? Number.NaN : Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

function parseNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined
}
