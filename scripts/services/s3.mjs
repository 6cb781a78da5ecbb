// @ts-check
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onFreePort } from './ports.mjs'
import { makeRunFolder } from './run-folder.mjs'
import { startServerProcess } from './server-process.mjs'

const BUCKET = 'holdfast-test'

/**
 * A real S3-compatible server on 127.0.0.1, with one bucket. Its credentials are S3RVER and S3RVER.
 * @returns {Promise<{ url: string, endpoint: string, bucket: string, version: string, from: string, kill: (signal?: NodeJS.Signals) => Promise<void>, stop: () => Promise<void> }>}
 *   `url`: the address of the bucket as an archive takes it
 */
export async function startS3() {
  const require = createRequire(import.meta.url)
  const { version } = JSON.parse(readFileSync(require.resolve('@20minutes/s3rver/package.json'), 'utf8'))
  const runFolder = await makeRunFolder('s3')
  try {
    return await onFreePort(async (port) => {
      const endpoint = `http://127.0.0.1:${port}`
      const server = await startServerProcess({
        name: 's3rver',
        command: process.execPath,
        args: [
          fileURLToPath(new URL('s3-process.mjs', import.meta.url)),
          join(runFolder.path, 'data'),
          String(port),
          BUCKET,
        ],
        cwd: runFolder.path,
        logFile: join(runFolder.path, 's3.log'),
        endSignal: 'SIGKILL',
        isReady: () => answers(endpoint),
      })
      return {
        url: `s3://${BUCKET}?endpoint=${encodeURIComponent(endpoint)}`,
        endpoint,
        bucket: BUCKET,
        version,
        from: '@20minutes/s3rver',
        kill: (signal = 'SIGKILL') => server.kill(signal),
        async stop() {
          await server.end()
          await runFolder.remove()
        },
      }
    })
  } catch (error) {
    await runFolder.remove()
    throw error
  }
}

/** @param {string} endpoint */
async function answers(endpoint) {
  try {
    await fetch(endpoint, { signal: AbortSignal.timeout(1000) })
    return true
  } catch {
    return false
  }
}
