export function noop(): void {}

/** A failure that somebody may look at later, or never if the run is stopped: that must not end the process. */
export function rejected(reason: unknown): Promise<never> {
  const promise = Promise.reject<never>(reason)
  promise.catch(noop)
  return promise
}
