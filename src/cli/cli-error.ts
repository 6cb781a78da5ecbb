import { sentence } from '../core/wording/sentence.js'
import { EXIT, exitCodeFor } from './exit-codes.js'

/** Something the person at the command line can fix. */
export class CliError extends Error {
  readonly code: string
  readonly remedy: string
  readonly exitCode: number
  readonly data: Readonly<Record<string, unknown>>

  constructor(
    code: string,
    message: string,
    options: { readonly remedy?: string; readonly exitCode?: number; readonly data?: Record<string, unknown> } = {},
  ) {
    super(sentence(message))
    this.name = 'CliError'
    this.code = code
    this.remedy = options.remedy ?? ''
    this.exitCode = options.exitCode ?? exitCodeFor(code)
    this.data = options.data ?? {}
  }
}

export function usageError(message: string, remedy = ''): CliError {
  return new CliError('usage', message, { remedy, exitCode: EXIT.usage })
}

/** What is shown of an error: never its stack, unless asked for. */
export interface ErrorReport {
  readonly code: string
  readonly message: string
  readonly remedy: string
  readonly exitCode: number
  readonly data: Readonly<Record<string, unknown>>
  readonly stack?: string
}

/** Breaks down any error: ours, the library's (from whichever copy), or an unexpected one. */
export function reportError(error: unknown, debug: boolean): ErrorReport {
  const stack = debug && error instanceof Error && error.stack ? { stack: withCauses(error) } : {}
  if (error instanceof CliError) {
    const { code, message, remedy, exitCode, data } = error
    return { code, message, remedy, exitCode, data, ...stack }
  }
  if (isLibraryError(error)) {
    // The library's messages end with the remedy, which is shown on a line of its own here.
    const message =
      error.remedy && error.message.endsWith(error.remedy)
        ? error.message.slice(0, -error.remedy.length).trim()
        : error.message
    return {
      code: error.code,
      message,
      remedy: error.remedy,
      exitCode: exitCodeFor(error.code),
      data: error.data,
      ...stack,
    }
  }
  const message = error instanceof Error ? error.message : String(error)
  return { code: 'failed', message, remedy: '', exitCode: EXIT.failed, data: {}, ...stack }
}

interface LibraryError extends Error {
  readonly code: string
  readonly remedy: string
  readonly data: Readonly<Record<string, unknown>>
}

function isLibraryError(error: unknown): error is LibraryError {
  return error instanceof Error && Symbol.for('holdfast.error') in error
}

function withCauses(error: Error): string {
  const parts: string[] = []
  for (let cause: unknown = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth++) {
    parts.push(cause.stack ?? cause.message)
  }
  return parts.join('\ncaused by ')
}
