import { setOwn } from '../value.js'

/**
 * Reads a text as JSON.parse should. V8 since Node 24 misreads keys with escapes: after an object whose key ends in a
 * backslash, it mistakes the key `"\n"` following the same keys for that one (nodejs/node#63785), and a value would
 * come back under another name. Only keys are affected, so everything else is still left to JSON.parse, and so are all
 * texts without such keys.
 */
export function parseEscapedKeys(text: string): unknown {
  const reader = new Reader(text)
  const value = reader.value()
  reader.end()
  return value
}

const LEAF = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const SPACE = /[ \t\n\r]*/y

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  value(): unknown {
    switch (this.#peek()) {
      case '{':
        return this.#object()
      case '[':
        return this.#array()
      case '"':
        return this.#string()
      default:
        return this.#leaf()
    }
  }

  end(): void {
    if (this.#peek() !== undefined) throw this.#unexpected()
  }

  #object(): Record<string, unknown> {
    const object: Record<string, unknown> = {}
    this.#take('{')
    if (this.#peek() !== '}') {
      do {
        if (this.#peek() !== '"') throw this.#unexpected()
        const key = this.#string()
        this.#take(':')
        setOwn(object, key, this.value())
      } while (this.#goesOn())
    }
    this.#take('}')
    return object
  }

  #array(): unknown[] {
    const items: unknown[] = []
    this.#take('[')
    if (this.#peek() !== ']') {
      do items.push(this.value())
      while (this.#goesOn())
    }
    this.#take(']')
    return items
  }

  #string(): string {
    let end = this.#at + 1
    for (; this.#text[end] !== '"'; end++) {
      if (end >= this.#text.length) throw this.#unexpected()
      if (this.#text[end] === '\\') end++
    }
    const quoted = this.#text.slice(this.#at, end + 1)
    this.#at = end + 1
    return JSON.parse(quoted) as string
  }

  #leaf(): unknown {
    LEAF.lastIndex = this.#at
    const [leaf] = LEAF.exec(this.#text) ?? []
    if (leaf === undefined) throw this.#unexpected()
    this.#at += leaf.length
    return JSON.parse(leaf)
  }

  #goesOn(): boolean {
    if (this.#peek() !== ',') return false
    this.#at++
    return true
  }

  #take(char: string): void {
    if (this.#peek() !== char) throw this.#unexpected()
    this.#at++
  }

  #peek(): string | undefined {
    SPACE.lastIndex = this.#at
    this.#at += SPACE.exec(this.#text)?.[0].length ?? 0
    return this.#text[this.#at]
  }

  #unexpected(): SyntaxError {
    return new SyntaxError(`Unexpected text at position ${this.#at} of the JSON.`)
  }
}
