import { CliError } from '../cli-error.js'
import { parseCount } from '../screen/times.js'

export const LAST_PORT = 65_535

export function readPort(given: string): number {
  if (given === '0') return 0
  return parseCount(given, '--port', LAST_PORT)
}

/** Says why an address can't be listened on; any other error stays as it is. */
export function cannotListen(error: unknown, host: string, port: number, option = '--host or --port'): unknown {
  const { code } = error as { readonly code?: string }
  if (code !== 'EADDRINUSE' && code !== 'EADDRNOTAVAIL' && code !== 'EACCES') return error
  const why = { EADDRINUSE: 'it is in use', EADDRNOTAVAIL: 'this machine has no such address', EACCES: 'not allowed' }[
    code
  ]
  return new CliError('unavailable', `Can't listen on ${host}:${port}: ${why}.`, {
    remedy: `Pass another ${option}.`,
  })
}
