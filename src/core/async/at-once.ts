/**
 * Calls `use` with a value: immediately, or once it is there. Values that usually need no waiting then cost no extra
 * turn and no promise, which would cost more than the work itself.
 */
export function andThen<Value, Result>(
  value: Value | Promise<Value>,
  use: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return value instanceof Promise ? value.then(use) : use(value)
}

/** What other code returned: a promise of this realm if it has to be awaited, otherwise the value itself. */
export function nowOrLater<Value>(given: Value | PromiseLike<Value>): Value | Promise<Value> {
  const { then } = (given ?? {}) as Partial<PromiseLike<Value>>
  return typeof then === 'function' ? Promise.resolve(given) : (given as Value)
}

/** Does something for each item in sequence, without waiting as long as nothing has to be awaited. */
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
