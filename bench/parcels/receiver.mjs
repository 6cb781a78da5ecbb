// @ts-check
import { parentPort } from 'node:worker_threads'
import { unpackAppends } from '#src/drivers/sqlite/parcel/append-parcel.js'

/** Takes a batch out of its parcel, or as it is, and answers with what it found. */
parentPort?.on('message', (/** @type {{ parcel?: any, tasks?: any[] }} */ { parcel, tasks }) => {
  const found = parcel ? unpackAppends(parcel) : (tasks ?? [])
  let bytes = 0
  for (const { entries } of found) for (const { header, body } of entries) bytes += header.length + body.length
  parentPort?.postMessage(bytes)
})
