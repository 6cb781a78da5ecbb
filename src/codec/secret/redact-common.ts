import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import type { Redact } from './redactor.js'

/** Which of the usual secrets are removed. All by default. */
export interface CommonRedactions {
  /** API keys and tokens, passwords in URLs and settings, private keys. */
  readonly keys?: boolean
  /** Payment card numbers, recognized by their check digit. */
  readonly cards?: boolean
  /** Email addresses. */
  readonly mails?: boolean
}

const KEY = '[redacted key]'
const CARD = '[redacted card]'
const MAIL = '[redacted mail]'

const MAX_PASSES = 10

/** Properties whose text is a secret, whatever it looks like. */
const SECRET_NAMES =
  /^(pass(word|wd|phrase)|secret|client[-_]?secret|api[-_]?key|access[-_]?token|refresh[-_]?token|authorization|private[-_]?key)$/i
const CARD_NAMES = /^(card[-_]?number|cvv|cvc|cv2)$/i

// Every repetition is limited, so that no text takes more time than a constant times its length.
const KEYS: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer|Basic) {1,3}[\w.~+/=-]{8,4096}/gi, `$1 ${KEY}`],
  [/\b(?:sk|pk|rk|xai|gsk|hf|ghp|gho|ghs|ghu|glpat|npm|xox[abeprs])[-_][\w-]{10,255}/g, KEY],
  [/\bgithub_pat_\w{20,255}/g, KEY],
  [/\bAIza[\w-]{30,60}/g, KEY],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, KEY],
  [/\beyJ[\w-]{8,4096}\.[\w-]{2,8192}(?:\.[\w-]{0,4096})?/g, KEY],
  [
    /\b((?:api|access|secret|auth|private)[-_ ]?(?:key|token)|password|passwd|client[-_]secret)(["']?\s{0,3}[:=]\s{0,3}["']?)(?!\[redacted)[^\s"',;&}[\]]{4,512}/gi,
    `$1$2${KEY}`,
  ],
  [/(:\/\/)[^/\s:@]{1,128}:[^/\s@]{1,256}@/g, `$1${KEY}@`],
]
const PRIVATE_KEY = /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----/g
const CARDS = /(?<![\d.,-])\d(?:[ -]?\d){12,18}(?![\d])/g
const MAILS = /(?<![\w.%+-])[\w.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}/g

const OPTIONS: OptionNames<CommonRedactions> = { keys: true, cards: true, mails: true }

/** A hook for the option `redact` that removes keys, card numbers and email addresses. */
export function redactCommon(options: CommonRedactions = {}): Redact {
  checkOptionNames('redactCommon()', options, OPTIONS)
  const { keys = true, cards = true, mails = true } = options
  return (text, key) => {
    if (keys && key !== undefined && text !== '' && SECRET_NAMES.test(key)) return KEY
    if (cards && key !== undefined && text !== '' && CARD_NAMES.test(key)) return CARD
    let clean = text
    // Removing something may join what was apart: what is returned must come back unchanged.
    for (let passes = 0; passes < MAX_PASSES; passes++) {
      const before = clean
      if (keys) clean = redactKeys(clean)
      if (cards) clean = clean.replace(CARDS, (found) => (isCard(found) ? CARD : found))
      if (mails) clean = clean.replace(MAILS, MAIL)
      if (clean === before) break
    }
    return clean
  }
}

function redactKeys(text: string): string {
  let clean = redactPrivateKeys(text)
  for (const [pattern, replacement] of KEYS) clean = clean.replace(pattern, replacement)
  return clean
}

// By hand: a pattern that looks for the end from every beginning takes quadratic time.
function redactPrivateKeys(text: string): string {
  let clean = ''
  let done = 0
  for (const found of text.matchAll(PRIVATE_KEY)) {
    if (found.index < done) continue
    const end = text.indexOf('PRIVATE KEY-----', found.index + found[0].length)
    if (end === -1) break
    clean += `${text.slice(done, found.index)}${KEY}`
    done = end + 'PRIVATE KEY-----'.length
  }
  return done === 0 ? text : `${clean}${text.slice(done)}`
}

/** By the check digit (Luhn), so that order numbers and times stay. */
function isCard(text: string): boolean {
  const digits = text.replace(/\D/g, '')
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i])
    sum += i % 2 === 0 ? digit : digit > 4 ? 2 * digit - 9 : 2 * digit
  }
  // All zeros have a good check digit, too.
  return sum > 0 && sum % 10 === 0
}
