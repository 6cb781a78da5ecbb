/**
 * Text columns can't hold NUL, and UTF-8 has no lone surrogates. Text that has one, or that looks like the escaped
 * form, is stored as a JSON string, which is never text of the first kind; all other text is stored as it is.
 */
export function toText(text: string): string {
  return text.startsWith('"') || text.includes('\0') || !text.isWellFormed() ? JSON.stringify(text) : text
}

export function fromText(stored: string): string {
  return stored.startsWith('"') ? (JSON.parse(stored) as string) : stored
}
