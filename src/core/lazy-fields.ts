/** What the lazy fields of an object are read from. */
const SOURCE: unique symbol = Symbol('holdfast.source')

interface Lazy {
  readonly [SOURCE]: Readonly<Record<string, unknown>>
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
        return this[SOURCE][name]
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
  Object.defineProperty(given, SOURCE, { value: source })
  for (const name in fields) Object.defineProperty(given, name, fields[name])
  return given as Given & Pick<Source, Name>
}
