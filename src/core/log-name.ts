import { DEFAULT_TENANT, MAIN_BRANCH } from './ids.js'

/** A log's name for messages: `thread "bf-847"`, with its branch and tenant if they are not the defaults. */
export function nameLog(log: { readonly tenant: string; readonly thread: string; readonly branch: string }): string {
  const branch = log.branch === MAIN_BRANCH ? '' : ` branch ${quote(log.branch)}`
  const tenant = log.tenant === DEFAULT_TENANT ? '' : ` of tenant ${quote(log.tenant)}`
  return `thread ${quote(log.thread)}${branch}${tenant}`
}

/** Printable ASCII without what JSON escapes. */
const PLAIN = /^[ !#-[\]-~]*$/

// Ids may contain invisible and direction-changing characters, which would make a message show a different id than the
// one it is about.
function quote(id: string): string {
  // Nearly all of them, and logs are looked up by this name.
  if (PLAIN.test(id)) return `"${id}"`
  return JSON.stringify(id).replace(/\p{Cf}/gu, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`)
}
