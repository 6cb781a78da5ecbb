/**
 * A message as a sentence: it starts with a capital and ends with exactly one punctuation mark. Messages are assembled
 * from parts that others wrote, such as what a database or a tool said: some of those end with a period and some don't,
 * and what follows is the remedy, a sentence of its own.
 */
export function sentence(text: string): string {
  const trimmed = text.trim().replace(/([.!?…])[.,;:]+$/, '$1')
  if (trimmed === '') return trimmed
  const ended = /[.!?…:]["'”’)\]]*$/.test(trimmed) ? trimmed : `${trimmed}.`
  // A word, and not an identifier such as `maxSteps` or a path such as `messages[3]`, which must be kept verbatim.
  return /^[a-z]+(?=[ ,:;']|$)/.test(ended) ? ended[0]?.toUpperCase() + ended.slice(1) : ended
}

/** A field as the subject of a sentence: `thread id` is "The thread id", `a key of it` is "A key of it". */
export function subject(field: string): string {
  if (/^(an?|the|each|every|this) /.test(field)) return field[0]?.toUpperCase() + field.slice(1)
  return /^[a-z]/.test(field) ? `The ${field}` : field
}
