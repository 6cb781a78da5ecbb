/**
 * Reads a lazy field of an object. A function, and one that may be replaced: somebody's proxy around the object, which
 * wraps whatever it returns, would otherwise hand out what it must not wrap, or what can't be read through it.
 */
const READ: unique symbol = Symbol('holdfast.read')

interface Lazy {
  readonly [READ]: (name: string) => unknown
}

export type LazyFields<Name extends string> = Readonly<Record<Name, PropertyDescriptor>>

/**
 * Fields for `withLazyFields`.
 * @param isReplaceable whoever receives the object may assign to them.
 */
export function lazyFields<const Name extends string>(names: readonly Name[], isReplaceable = false): LazyFields<Name> {
  return Object.fromEntries(
    names.map((name) => {
      const get = function (this: Lazy): unknown {
        return this[READ](name)
      }
      const set = function (this: Lazy, value: unknown): void {
        Object.defineProperty(this, name, { value, enumerable: true, configurable: true, writable: true })
      }
      return [name, { get, ...(isReplaceable ? { set } : {}), enumerable: true, configurable: true }]
    }),
  ) as LazyFields<Name>
}

/**
 * Adds fields that are made when somebody reads them. They are the object's own, so that a copy of it has their values.
 * Not by getters in its literal: each of those is a function of its own, which makes the object slow, and which the
 * engine keeps until the next full collection, with everything that it can reach and whatever else it leads to.
 */
export function withLazyFields<Given extends object, Name extends string, Source extends Record<Name, unknown>>(
  given: Given,
  source: Source,
  fields: LazyFields<Name>,
): Given & Pick<Source, Name> {
  const value = (name: Name) => source[name]
  Object.defineProperty(given, READ, { value, configurable: true, writable: true })
  for (const name in fields) Object.defineProperty(given, name, fields[name])
  return given as Given & Pick<Source, Name>
}
