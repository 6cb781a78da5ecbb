// @ts-check
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findLost, startAppender } from './log-rounds.mjs'

const IMAGE_MB = 96

/** Why a power loss can't be played here, or undefined if it can. */
export function whyNoPowerLoss() {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'mounting a filesystem image needs Linux and root'
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-loop-'))
  try {
    withImage(folder, () => undefined)
    return undefined
  } catch (error) {
    return `no filesystem image can be mounted here: ${error instanceof Error ? error.message.split('\n')[0] : error}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * A writer works on a filesystem inside an image. It is frozen at a random moment and the image is copied as the disk
 * holds it then: what the kernel has not written yet is missing from the copy, as after a power loss. The copy is
 * mounted, its journal replayed, and what the writer was told is compared with what is there.
 * @param {{ url: (folder: string) => string, longestMs?: number }} options
 */
export async function powerLossRound({ url, longestMs = 1500 }) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-power-'))
  const copy = join(folder, 'copy.ext4')
  try {
    const acknowledged = await withImage(folder, async (mounted, image) => {
      const writer = startAppender(url(mounted), 'p')
      // Only what was acknowledged can be lost.
      await writer.line('ack')
      await sleep(300 + Math.random() * longestMs)
      writer.child.kill('SIGSTOP')
      // What the writer printed before it froze is still on its way through the pipe.
      await sleep(50)
      const told = [...writer.acknowledged]
      copyFileSync(image, copy)
      writer.child.kill('SIGKILL')
      await writer.exited
      return told
    })
    const lost = await withMount(folder, copy, 'after', (mounted) => findLost(url(mounted), 'p', acknowledged))
    return { acknowledged: acknowledged.length, lost: lost.length }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** @template Result @param {string} folder @param {(mounted: string, image: string) => Result | Promise<Result>} work */
function withImage(folder, work) {
  const image = join(folder, 'disk.ext4')
  execFileSync('truncate', ['-s', `${IMAGE_MB}M`, image])
  execFileSync('mkfs.ext4', ['-q', '-F', image], { stdio: 'pipe' })
  return withMount(folder, image, 'before', (mounted) => work(mounted, image))
}

/** @template Result @param {string} folder @param {string} image @param {string} name @param {(mounted: string) => Result | Promise<Result>} work */
function withMount(folder, image, name, work) {
  const mounted = join(folder, name)
  mkdirSync(mounted)
  execFileSync('mount', ['-o', 'loop', image, mounted], { stdio: 'pipe' })
  const unmount = () => execFileSync('umount', [mounted], { stdio: 'pipe' })
  /** @type {Result | Promise<Result>} */
  let result
  try {
    result = work(mounted)
  } catch (error) {
    unmount()
    throw error
  }
  if (!(result instanceof Promise)) {
    unmount()
    return /** @type {any} */ (result)
  }
  return /** @type {any} */ (result.finally(unmount))
}
