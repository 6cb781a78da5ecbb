import { createHash } from 'node:crypto'
import type { IndexFields, MetadataValue } from '../../../log/contract.js'

/** The label rows of an index row. */
export function labelsOf(index: IndexFields): Buffer[] {
  return [
    ...index.tags.map(tagLabel),
    ...Object.entries(index.metadata).map(([name, value]) => metadataLabel(name, value)),
  ]
}

export function tagLabel(tag: string): Buffer {
  return digest(['tag', tag])
}

export function metadataLabel(name: string, value: MetadataValue): Buffer {
  return digest(['metadata', name, value])
}

// JSON keeps 1, '1' and true apart, and writes NUL and lone surrogates as escapes.
function digest(parts: readonly MetadataValue[]): Buffer {
  return createHash('sha256').update(JSON.stringify(parts)).digest()
}
