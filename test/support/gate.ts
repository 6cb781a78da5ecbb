/** A promise and what settles it: holds something open until it was looked at. */
export function gate<Value = void>(): { readonly passed: Promise<Value>; open(value: Value): void } {
  let open: (value: Value) => void = () => {}
  const passed = new Promise<Value>((resolve) => {
    open = resolve
  })
  return { passed, open }
}
