import type { Value } from '../../codec/value.js'
import { fail, type Found, isFit, type Look, spokeOfItem, take } from './findings.js'
import type { SchemaObject } from './references.js'
import { kindOf } from './value-kind.js'

type List = readonly Value[]

export function checkArray(check: Look, schema: SchemaObject, list: List, path: string, found: Found): void {
  const { minItems, maxItems, uniqueItems } = schema
  if (typeof minItems === 'number' && list.length < minItems) {
    fail(found, path, `must have at least ${minItems} items, not ${list.length}`)
  }
  if (typeof maxItems === 'number' && list.length > maxItems) {
    fail(found, path, `must have at most ${maxItems} items, not ${list.length}`)
  }
  checkItems(check, schema, list, path, found)
  checkContained(check, schema, list, path, found)
  if (uniqueItems === true) {
    const seen = new Set<string>()
    for (const [i, item] of list.entries()) {
      const name = canonical(item)
      check.spend(Math.ceil(name.length / 100), path)
      if (seen.has(name)) fail(found, `${path}[${i}]`, 'appears twice')
      seen.add(name)
    }
  }
  const { unevaluatedItems } = schema
  if (unevaluatedItems === undefined) return
  for (const [i, item] of list.entries()) {
    if (i < found.items || found.contained?.has(i)) continue
    take(found, check.apply(unevaluatedItems, item, `${path}[${i}]`))
  }
  found.items = Number.POSITIVE_INFINITY
}

/** `prefixItems` and `items`; before 2020 these were a list in `items`, and `additionalItems`. */
function checkItems(check: Look, schema: SchemaObject, list: List, path: string, found: Found): void {
  const { items } = schema
  const isOld = Array.isArray(items)
  const first = isOld ? (items as List) : Array.isArray(schema['prefixItems']) ? (schema['prefixItems'] as List) : []
  const rest = isOld ? schema['additionalItems'] : items
  for (const [i, item] of list.entries()) {
    const own = i < first.length ? first[i] : rest
    if (own === undefined) break
    take(found, check.apply(own, item, `${path}[${i}]`))
  }
  found.items = Math.max(found.items, rest === undefined ? first.length : Number.POSITIVE_INFINITY)
}

function checkContained(check: Look, schema: SchemaObject, list: List, path: string, found: Found): void {
  const { contains } = schema
  if (contains === undefined) return
  const least = typeof schema['minContains'] === 'number' ? schema['minContains'] : 1
  const most = typeof schema['maxContains'] === 'number' ? schema['maxContains'] : Number.POSITIVE_INFINITY
  let count = 0
  for (const [i, item] of list.entries()) {
    if (!isFit(check.apply(contains, item, `${path}[${i}]`))) continue
    count++
    spokeOfItem(found, i)
  }
  if (count < least) fail(found, path, `must hold at least ${least} items of a kind, not ${count}`)
  if (count > most) fail(found, path, `must hold at most ${most} items of a kind, not ${count}`)
}

/** A text that is the same for values that are the same to JSON. */
function canonical(value: Value): string {
  const kind = kindOf(value)
  if (kind === 'array') return `[${(value as List).map(canonical).join()}]`
  if (kind !== 'object') return kind === 'other' ? `${typeof value}:${String(value)}` : JSON.stringify(value)
  const names = Object.keys(value as object).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical((value as SchemaObject)[name] as Value)}`).join()}}`
}
