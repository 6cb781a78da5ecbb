import type { Value } from '../codec/value.js'

/** A schema that is an object; the others are `true` and `false`. */
export type SchemaObject = { readonly [keyword: string]: Value }

/** Keywords whose value is a schema, a list of schemas, or a map of them. */
const MAPS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])
/** Keywords whose value is data, whatever it looks like. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required', 'type'])
/** Keywords that apply schemas to the very same value. */
const IN_PLACE_LISTS = ['allOf', 'anyOf', 'oneOf'] as const
const IN_PLACE = ['not', 'if', 'then', 'else'] as const
const REFERENCES = ['$ref', '$dynamicRef', '$recursiveRef'] as const

/** Where references without an address of their own are counted from. */
const BASE = 'schema:/'

/** More would take longer to look through than any answer is worth. */
const MAX_SCHEMAS = 20_000
const MAX_DEPTH = 200

/** All places of a schema that others refer to. Nothing is ever fetched: what is not part of it does not exist. */
export class References {
  /** The patterns in it, as they are written. */
  readonly patterns = new Set<string>()
  readonly #bases = new Map<SchemaObject, string>()
  /** By address, and by address and anchor. */
  readonly #places = new Map<string, SchemaObject>()
  readonly #resolved = new Map<SchemaObject, Map<string, Value | undefined>>()
  readonly #problems: string[] = []

  constructor(root: Value) {
    if (isSchemaObject(root)) {
      this.#places.set(BASE, root)
      this.#walk(root, BASE, 0)
      this.#check()
    }
  }

  /** Why values can't be checked against the schema at all; empty when they can. */
  get problems(): readonly string[] {
    return this.#problems
  }

  /** The schema that a reference in another one means. */
  resolve(from: SchemaObject, reference: string): Value | undefined {
    const known = this.#resolved.get(from) ?? new Map<string, Value | undefined>()
    if (known.has(reference)) return known.get(reference)
    const target = this.#find(from, reference)
    this.#resolved.set(from, known.set(reference, target))
    return target
  }

  #find(from: SchemaObject, reference: string): Value | undefined {
    const base = this.#bases.get(from) ?? BASE
    const [address, fragment] = split(absolute(reference, base))
    if (fragment !== '' && !fragment.startsWith('/')) return this.#places.get(`${address}#${fragment}`)
    const resource = this.#places.get(address)
    if (resource === undefined || fragment === '') return resource
    let place: Value | undefined = resource
    for (const part of fragment.slice(1).split('/')) {
      const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
      if (typeof place !== 'object' || place === null || !Object.hasOwn(place, name)) return undefined
      place = (place as SchemaObject)[name]
    }
    return place
  }

  /** Without recursion into data. Places that no keyword leads to are walked too: references may. */
  #walk(schema: SchemaObject, base: string, depth: number): void {
    if (this.#bases.has(schema)) return
    if (depth > MAX_DEPTH || this.#bases.size >= MAX_SCHEMAS) {
      this.#problems.splice(0, 1, `holds more than ${MAX_SCHEMAS} schemas, or more than ${MAX_DEPTH} inside each other`)
      return
    }
    let own = base
    const { $id: id, pattern } = schema
    if (typeof id === 'string') {
      own = split(absolute(id, base))[0]
      // In draft 7 an id that is a fragment is an anchor.
      if (id.startsWith('#')) this.#places.set(`${base}${id}`, schema)
      else this.#places.set(own, schema)
    }
    this.#bases.set(schema, own)
    for (const name of ['$anchor', '$dynamicAnchor']) {
      if (typeof schema[name] === 'string') this.#places.set(`${own}#${schema[name]}`, schema)
    }
    if (typeof pattern === 'string') this.patterns.add(pattern)
    for (const [keyword, value] of Object.entries(schema)) {
      if (DATA.has(keyword) || typeof value !== 'object' || value === null) continue
      if (keyword === 'patternProperties') for (const one of Object.keys(value)) this.patterns.add(one)
      const inner = MAPS.has(keyword) || Array.isArray(value) ? Object.values(value as SchemaObject) : [value]
      for (const one of inner) if (isSchemaObject(one)) this.#walk(one, own, depth + 1)
    }
  }

  #check(): void {
    if (this.#problems.length > 0) return
    for (const schema of this.#bases.keys()) {
      for (const reference of referencesOf(schema)) {
        if (this.resolve(schema, reference) !== undefined) continue
        this.#problems.push(`refers to ${JSON.stringify(reference)}, which is not part of it (nothing is fetched)`)
        if (this.#problems.length >= 10) return
      }
    }
    if (this.#problems.length === 0) this.#findCircle()
  }

  /** A schema that leads to itself without going into the value would be applied forever. */
  #findCircle(): void {
    const done = new Set<SchemaObject>()
    const open = new Set<SchemaObject>()
    const visit = (schema: SchemaObject): boolean => {
      if (open.has(schema)) return true
      if (done.has(schema)) return false
      open.add(schema)
      const isCircle = this.#inPlace(schema).some(visit)
      open.delete(schema)
      done.add(schema)
      return isCircle
    }
    for (const schema of this.#bases.keys()) {
      if (!visit(schema)) continue
      this.#problems.push('refers to itself in an endless circle')
      return
    }
  }

  #inPlace(schema: SchemaObject): SchemaObject[] {
    const found: unknown[] = referencesOf(schema).map((reference) => this.resolve(schema, reference))
    for (const keyword of IN_PLACE_LISTS) if (Array.isArray(schema[keyword])) found.push(...schema[keyword])
    for (const keyword of IN_PLACE) found.push(schema[keyword])
    for (const keyword of ['dependentSchemas', 'dependencies']) found.push(...Object.values(schema[keyword] ?? {}))
    return found.filter(isSchemaObject)
  }
}

export function referencesOf(schema: SchemaObject): string[] {
  return REFERENCES.flatMap((keyword) => {
    const reference = schema[keyword]
    return typeof reference === 'string' ? [reference] : []
  })
}

export function isSchemaObject(value: unknown): value is SchemaObject {
  if (typeof value !== 'object' || value === null) return false
  return !Array.isArray(value) && !(value instanceof Date) && !(value instanceof Uint8Array)
}

function absolute(reference: string, base: string): string {
  return URL.canParse(reference, base) ? new URL(reference, base).href : `${base}${reference}`
}

function split(address: string): [address: string, fragment: string] {
  const at = address.indexOf('#')
  if (at === -1) return [address, '']
  try {
    return [address.slice(0, at), decodeURIComponent(address.slice(at + 1))]
  } catch {
    return [address.slice(0, at), address.slice(at + 1)]
  }
}
