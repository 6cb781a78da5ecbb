// @ts-check
// The process of an S3-compatible server: folder, port, bucket.
import { mkdirSync } from 'node:fs'
import S3rver from '@20minutes/s3rver'

const [directory = '', port = '', bucket = ''] = process.argv.slice(2)
mkdirSync(directory, { recursive: true })
const server = new S3rver({
  directory,
  address: '127.0.0.1',
  port: Number(port),
  silent: true,
  // It takes the slash behind the bucket out of what was signed, where S3 itself leaves it: lists would be refused.
  allowMismatchedSignatures: true,
  configureBuckets: [{ name: bucket, configs: [] }],
})
await server.run()
