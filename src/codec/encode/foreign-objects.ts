/** The Object.prototype of another realm, such as a vm context's: nothing else without a prototype has hasOwnProperty. */
export function isForeignObjectPrototype(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty')
}

export function isForeignArrayPrototype(prototype: unknown): boolean {
  return Array.isArray(prototype) && isForeignObjectPrototype(Object.getPrototypeOf(prototype) ?? {})
}

/** What a value that is not plain data calls itself. */
export function className(input: object): string {
  const name = (input as { constructor?: { name?: unknown } }).constructor?.name
  return typeof name === 'string' && name ? name : 'class instance'
}
