import type { Value } from '../../codec/value.js'
import { fail, type Found, type Look, merge, spokeOf, take } from './findings.js'
import { isSchemaObject, type SchemaObject } from './references.js'
import { showJson } from './value-kind.js'

export function checkObject(check: Look, schema: SchemaObject, value: SchemaObject, path: string, found: Found): void {
  const names = Object.keys(value)
  const { minProperties, maxProperties, required, propertyNames } = schema
  if (typeof minProperties === 'number' && names.length < minProperties) {
    fail(found, path, `must have at least ${minProperties} properties, not ${names.length}`)
  }
  if (typeof maxProperties === 'number' && names.length > maxProperties) {
    fail(found, path, `must have at most ${maxProperties} properties, not ${names.length}`)
  }
  for (const name of Array.isArray(required) ? (required as readonly string[]) : []) {
    if (!Object.hasOwn(value, name)) fail(found, path, `lacks the property ${showJson(name)}`)
  }
  if (propertyNames !== undefined) {
    for (const name of names) {
      const { problems } = check.apply(propertyNames, name, path)
      if (problems[0]) fail(found, path, `has a property ${showJson(name)}, whose name ${problems[0].message}`)
    }
  }
  checkProperties(check, schema, value, names, path, found)
  checkDependencies(check, schema, value, path, found)
  const { unevaluatedProperties } = schema
  if (unevaluatedProperties === undefined) return
  for (const name of names) {
    if (found.names?.has(name)) continue
    refuseOrTake(check, unevaluatedProperties, value, name, path, found)
    spokeOf(found, name)
  }
}

function checkProperties(
  check: Look,
  schema: SchemaObject,
  value: SchemaObject,
  names: readonly string[],
  path: string,
  found: Found,
): void {
  const properties = isSchemaObject(schema['properties']) ? schema['properties'] : {}
  const patterns = Object.entries(isSchemaObject(schema['patternProperties']) ? schema['patternProperties'] : {})
  const { additionalProperties } = schema
  for (const name of names) {
    const at = join(path, name)
    let isKnown = false
    if (Object.hasOwn(properties, name)) {
      isKnown = true
      take(found, check.apply(properties[name], value[name] as Value, at))
    }
    for (const [pattern, own] of patterns) {
      const isFound = check.find(pattern, name, path)
      if (isFound === undefined) fail(found, at, `can't be compared with the pattern ${showJson(pattern)} in time`)
      if (!isFound) continue
      isKnown = true
      take(found, check.apply(own, value[name] as Value, at))
    }
    if (isKnown) spokeOf(found, name)
    else if (additionalProperties !== undefined) {
      refuseOrTake(check, additionalProperties, value, name, path, found)
      spokeOf(found, name)
    }
  }
}

/** `false` for what else there is means that there must be nothing else. */
function refuseOrTake(check: Look, schema: Value, value: SchemaObject, name: string, path: string, found: Found): void {
  if (schema === false) fail(found, join(path, name), 'is not a known property')
  else take(found, check.apply(schema, value[name] as Value, join(path, name)))
}

function checkDependencies(check: Look, schema: SchemaObject, value: SchemaObject, path: string, found: Found) {
  for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies'] as const) {
    const dependencies = schema[keyword]
    if (!isSchemaObject(dependencies)) continue
    for (const [name, own] of Object.entries(dependencies)) {
      if (!Object.hasOwn(value, name)) continue
      if (!Array.isArray(own)) merge(found, check.apply(own, value, path))
      else {
        for (const other of own as readonly string[]) {
          if (Object.hasOwn(value, other)) continue
          fail(found, path, `has ${showJson(name)} and lacks the property ${showJson(other)}, which goes with it`)
        }
      }
    }
  }
}

/** A path for messages. */
function join(path: string, name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`
}
