/**
 * Calls `use` with a value: at once, or when it is there. What usually needs no waiting then takes no turn of its own
 * and no promise, which would cost more than the work itself.
 */
export function andThen<Value, Result>(
  value: Value | Promise<Value>,
  use: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return value instanceof Promise ? value.then(use) : use(value)
}

/** Does something for each item, one after another, and at once as long as nothing has to be waited for. */
export function forEachInTurn<Item>(
  items: readonly Item[],
  work: (item: Item) => undefined | Promise<undefined>,
  from = 0,
): undefined | Promise<undefined> {
  for (let at = from; at < items.length; at++) {
    const working = work(items[at] as Item)
    if (working instanceof Promise) return working.then(() => forEachInTurn(items, work, at + 1))
  }
  return undefined
}
