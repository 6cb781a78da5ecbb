import type { Driver } from './contract.js'

/** A driver with some of its methods replaced, or added. */
export function overlay(driver: Driver, overrides: Partial<Driver>): Driver {
  return new Proxy(driver, {
    get(target, name) {
      if (Object.hasOwn(overrides, name)) return overrides[name as keyof Driver]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    has: (target, name) => Object.hasOwn(overrides, name) || name in target,
  })
}
