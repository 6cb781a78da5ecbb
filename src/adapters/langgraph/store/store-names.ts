import { InvalidNamespaceError } from '@langchain/langgraph-checkpoint'
import { InvalidIdError } from '../../../errors.js'

// The separator sorts below every character of a label, so the namespaces under a prefix lie side by side.
const SEPARATOR = '!'
const ESCAPED = /[%! \p{Cc}\p{Zl}\p{Zp}]/gu

/** The collection of a namespace: `users!42!`. Each label ends with the separator, so `users!4` is no prefix of it. */
export function collectionOf(namespace: readonly string[]): string {
  if (!Array.isArray(namespace) || namespace.length === 0) {
    throw new InvalidIdError('namespace', 'is empty', "Pass at least one label, such as ['memories'].")
  }
  return namespacePrefix(namespace)
}

/** The rules of LangGraph's own stores for what is put: a namespace that passes here can move to any of them. */
export function checkNamespace(namespace: readonly unknown[]): void {
  if (!Array.isArray(namespace) || namespace.length === 0) {
    throw new InvalidNamespaceError("The namespace is empty. Pass at least one label, such as ['memories'].")
  }
  for (const label of namespace) {
    if (typeof label !== 'string' || label === '') {
      throw new InvalidNamespaceError(`The namespace label ${JSON.stringify(label)} must be a non-empty string.`)
    }
    if (label.includes('.')) {
      throw new InvalidNamespaceError(`The namespace label ${JSON.stringify(label)} has a period. Use labels without.`)
    }
  }
  if (namespace[0] === 'langgraph') {
    throw new InvalidNamespaceError(`The first label of a namespace can't be "langgraph". Use another.`)
  }
}

/** What the collections of a namespace and of all below it begin with. */
export function namespacePrefix(namespace: readonly string[]): string {
  return namespace.map((label) => escape('namespace label', label) + SEPARATOR).join('')
}

export function namespaceOfCollection(collection: string): string[] {
  return collection.slice(0, -1).split(SEPARATOR).map(unescape)
}

export function escape(field: string, text: unknown): string {
  if (typeof text !== 'string' || text === '' || !text.isWellFormed()) {
    throw new InvalidIdError(field, 'must be a non-empty string', 'Pass a string of valid Unicode.')
  }
  return text.replace(ESCAPED, (char) => [...Buffer.from(char)].map((byte) => `%${hex(byte)}`).join(''))
}

export function unescape(text: string): string {
  return decodeURIComponent(text.replace(/[^%]+/g, (plain) => encodeURIComponent(plain)))
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0')
}
