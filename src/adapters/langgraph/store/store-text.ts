/**
 * The texts of a value at a path of LangGraph's index configuration: `$` (all of it), `a.b`, `a[0]`, `a[-1]`, `a[*].b`,
 * `*` and `{a,b}`.
 */
export function textsAt(value: unknown, path: string): string[] {
  if (path === '' || path === '$') return [render(value)]
  return collect(value, tokenize(path), 0)
}

function collect(value: unknown, tokens: readonly string[], at: number): string[] {
  const token = tokens[at]
  if (token === undefined) return leaf(value)
  if (token === '*') {
    const children = typeof value === 'object' && value !== null ? Object.values(value) : []
    return children.flatMap((child) => collect(child, tokens, at + 1))
  }
  if (token.startsWith('[')) {
    if (!Array.isArray(value)) return []
    const index = token.slice(1, -1)
    if (index === '*') return value.flatMap((item) => collect(item, tokens, at + 1))
    const item: unknown = value.at(Number.parseInt(index, 10))
    return item === undefined ? [] : collect(item, tokens, at + 1)
  }
  if (token.startsWith('{')) {
    const fields = token.slice(1, -1).split(',')
    return fields.flatMap((field) => collect(value, tokenize(field.trim()), 0))
  }
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, token)) return []
  return collect((value as Record<string, unknown>)[token], tokens, at + 1)
}

function leaf(value: unknown): string[] {
  if (value === null || value === undefined) return []
  if (typeof value === 'string') return [value]
  return [typeof value === 'object' ? render(value) : String(value)]
}

function render(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part), 2)
}

function tokenize(path: string): string[] {
  return path.match(/\[[^\]]*\]|\{[^}]*\}|[^.[{]+/g) ?? []
}
