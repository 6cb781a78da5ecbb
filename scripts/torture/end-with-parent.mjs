// @ts-check

/** Ends this process when whoever started it is gone, so that a stopped torture leaves no workers behind. */
export function endWithParent() {
  process.stdin.on('end', () => process.exit(1)).resume()
  // An open pipe must not keep a process alive that has nothing left to do.
  const { unref } = /** @type {{ unref?: () => void }} */ (process.stdin)
  unref?.call(process.stdin)
}
