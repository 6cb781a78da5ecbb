type Loose = Readonly<Record<string, unknown>>

/** The texts of a message that can be changed, by their place. */
export function editableTexts(message: unknown): readonly { readonly part: number; readonly text: string }[] {
  const { parts, content } = message as Loose
  if (typeof content === 'string') return [{ part: -1, text: content }]
  if (!Array.isArray(parts)) return []
  return (parts as readonly Loose[]).flatMap((part, i) =>
    part['type'] === 'text' && typeof part['text'] === 'string' ? [{ part: i, text: part['text'] }] : [],
  )
}

/** The message with another text. It is another message then: what the old one's signatures said does not hold for it. */
export function editText(message: unknown, part: number, text: string): unknown {
  const loose = message as Loose
  if (part === -1) return { ...loose, content: text }
  const parts = (loose['parts'] as readonly Loose[]).map((one, i) => {
    if (i !== part) return one
    const { providerMetadata: _, ...rest } = one
    return { ...rest, text }
  })
  return { ...loose, parts }
}
