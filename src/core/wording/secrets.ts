/** Stands for something that is not shown. */
const HIDDEN = '…'

/** Paths on this machine, which hold nothing but their own settings. */
const LOCAL = /^(sqlite|file|memory):/i

/**
 * A store's URL for messages and logs: scheme, host and path. User, password and query are left out, and if anything
 * about it is odd, such as a password that was not percent-encoded, only the scheme is shown.
 */
export function describeStoreUrl(url: string): string {
  return url
    .split(/,(?=\w+:\/\/)/)
    .map(describeOne)
    .join(',')
}

function describeOne(url: string): string {
  if (LOCAL.test(url)) return (url.split('?', 1)[0] as string).slice(0, 500)
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]{0,31}:/.exec(url)?.[0]
  if (scheme === undefined) return looksSecret(url) || /[@?:]/.test(url) ? HIDDEN : url.slice(0, 100)
  const hidden = url.startsWith('//', scheme.length) ? `${scheme}//${HIDDEN}` : `${scheme}${HIDDEN}`
  if (!URL.canParse(url)) return hidden
  const { host, pathname, search, hash } = new URL(url)
  // A slash, question mark or hash in a password makes the rest of it a path or a query, and the user a host.
  if (host === '' || `${pathname}${search}${hash}`.includes('@')) return hidden
  return `${scheme}//${host}${pathname === '/' ? '' : pathname}`
}

/**
 * True for text that is more likely a key than a name for one: 128 bits or more as base64 or hex, with a mix of
 * characters that looks random rather than written by a person.
 */
export function looksSecret(text: string): boolean {
  if (/^[0-9a-f]{32,}$/i.test(text)) return true
  if (text.length < 22 || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return false
  return changesOfClass(text) > 0.4 * text.length
}

/** A name for messages, or a placeholder if it may be a secret that was put in the wrong place. */
export function showName(name: string): string {
  return looksSecret(name) ? `<hidden, ${name.length} characters>` : name
}

/** How often adjacent characters are of a different class: other letter case, digit, anything else. */
function changesOfClass(text: string): number {
  let changes = 0
  for (let i = 1; i < text.length; i++) if (classOf(text[i] as string) !== classOf(text[i - 1] as string)) changes++
  return changes
}

function classOf(character: string): string {
  if (/[a-z]/.test(character)) return 'lower'
  if (/[A-Z]/.test(character)) return 'upper'
  return /\d/.test(character) ? 'digit' : 'other'
}
