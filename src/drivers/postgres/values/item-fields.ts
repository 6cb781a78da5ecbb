import type { NewItem } from '../../../log/store-contract.js'

/**
 * The fields of an item as an array of text in the form that Postgres reads: `{"\"colour\"","\"colour\":\"red\""}`.
 * As JSON a name or token can't imitate another, whatever is in it, and can be one that a text column can't hold.
 */
export function fieldsText(fields: NewItem['fields']): string {
  const texts = fields.flatMap(([name, token]) => [nameText(name), fieldText(name, token)])
  // JSON strings hold no control characters, so quoting once more only puts a backslash before `"` and `\`.
  return `{${texts.map((text) => JSON.stringify(text)).join()}}`
}

/** Held by every item that has a field of this name. */
export function nameText(name: string): string {
  return JSON.stringify(name)
}

export function fieldText(name: string, token: string): string {
  return `${JSON.stringify(name)}:${JSON.stringify(token)}`
}

/** The fields of such an array: its texts in turn are a name, and name and token. */
export function readFields(texts: readonly string[]): NewItem['fields'] {
  return texts.flatMap((name, i) => {
    if (i % 2 !== 0) return []
    const field = texts[i + 1] ?? ''
    return [[JSON.parse(name) as string, JSON.parse(field.slice(name.length + 1)) as string] as const]
  })
}
