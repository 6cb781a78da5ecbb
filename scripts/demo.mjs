// @ts-check
// Builds, then plays Black Friday: `npm run demo -- --sessions 100` passes arguments on to `holdfast demo`.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { build } from './build.mjs'

if (!(await build())) process.exit(1)
const command = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const child = spawn(process.execPath, [command, 'demo', ...process.argv.slice(2)], { stdio: 'inherit' })
// Ctrl-C reaches both: the demo ends its processes, and its own end is the end here. A signal to us alone is passed on.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => child.kill('SIGTERM'))
child.on('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 128)))
