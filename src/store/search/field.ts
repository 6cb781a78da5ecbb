import type { FieldPath } from '../../codec/item-field.js'
import { InvalidOptionError } from '../../core/errors.js'

/**
 * A field by its name, or by the path of names to it: `'city'`, `['address', 'city']`. A dot in a name is just a dot.
 */
export type FieldInput = string | readonly string[]

const MAX_PATH = 32
const MAX_NAME_LENGTH = 1000

/** Names with a special meaning in JavaScript. They can be stored, but not searched for. */
const RESERVED: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

export function parseField(option: string, field: unknown): FieldPath {
  const path: unknown = typeof field === 'string' ? [field] : field
  if (
    !Array.isArray(path) ||
    path.length === 0 ||
    path.length > MAX_PATH ||
    // Not `every`, which skips holes.
    path.some((part) => typeof part !== 'string') ||
    Object.keys(path).length !== path.length
  ) {
    throw new InvalidOptionError(
      option,
      'is not the name of a field',
      "Pass a name, or a path such as ['address', 'city'].",
    )
  }
  for (const name of path) checkName(name)
  return [...path]
}

export function checkName(name: string): void {
  if (RESERVED.has(name))
    throw new InvalidOptionError(`field ${name}`, 'is a reserved name', 'Call the field something else.')
  if (name.length <= MAX_NAME_LENGTH) return
  const problem = `is longer than ${MAX_NAME_LENGTH} characters`
  throw new InvalidOptionError(`field ${name.slice(0, 50)}…`, problem, 'Use a shorter name.')
}
