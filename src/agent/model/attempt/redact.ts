const MAX_LENGTH = 600

/** Each pattern keeps the name of the secret and removes the secret itself. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer|Basic)\s+[\w.~+/=-]+/gi, '$1 [hidden]'],
  [/\b(sk|pk|rk|xai|gsk|hf|ghp|gho|glpat)[-_][\w*.-]{6,}/g, '$1-[hidden]'],
  [/\bAIza[\w-]{10,}/g, '[hidden]'],
  [/\bAKIA[A-Z0-9]{12,}/g, '[hidden]'],
  [/\beyJ[\w-]{8,}\.[\w-]+(\.[\w-]*)?/g, '[hidden]'],
  [
    /\b((?:x-)?(?:goog-)?(?:api|access|secret|auth|subscription)[-_ ]?(?:key|token)|authorization|password|secret)(["']?\s*[:=]\s*["']?)[^\s"',;&}]+/gi,
    '$1$2[hidden]',
  ],
  [/([?&](?:key|api_key|apikey|token|access_token|sig|signature)=)[^&\s"']+/gi, '$1[hidden]'],
  [/(\/\/)[^/\s:@]+:[^/\s@]+@/g, '$1[hidden]@'],
]

/** What a provider said, made safe for a log: without keys and tokens, and no longer than a message should be. */
export function redactSecrets(text: string): string {
  // Cut first, with room to spare: the patterns should not run over megabytes of HTML.
  let clean = text.slice(0, MAX_LENGTH * 4)
  for (const [pattern, replacement] of SECRETS) clean = clean.replace(pattern, replacement)
  return clean.length > MAX_LENGTH ? `${clean.slice(0, MAX_LENGTH)}…` : clean
}
