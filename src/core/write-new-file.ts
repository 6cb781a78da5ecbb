import { open } from 'node:fs/promises'

/** Creates a file that is not there yet, readable only by its owner. It is on the disk when this resolves. */
export async function writeNewFile(path: string, content: Uint8Array | string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}
