const SETTERS = Object.getOwnPropertyNames(Date.prototype).filter((name) => name.startsWith('set'))
const REFUSALS = Object.fromEntries(
  SETTERS.map((name) => {
    const refuse = () => {
      throw new TypeError(`Cannot assign to read only property 'time' of a Date, by ${name}()`)
    }
    return [name, { value: refuse }]
  }),
)

/** A Date that refuses to be set. Its value is not a property, so freezing alone does not protect it. */
export function guardDate(date: Date): Date {
  return Object.isFrozen(date) ? date : Object.freeze(Object.defineProperties(date, REFUSALS))
}
