import { isHoldfastError, StorageError, UnavailableError } from '../../../core/errors.js'

interface Problem {
  readonly reason: string
  readonly says: string
  readonly remedy: string
  readonly retryable?: boolean
}

const PROBLEMS: Readonly<Record<string, Problem>> = {
  ENOSPC: { reason: 'disk-full', says: 'has no space left', remedy: 'Free some space, then try again.' },
  EDQUOT: {
    reason: 'disk-full',
    says: 'is over its quota',
    remedy: 'Free some space or raise the quota, then try again.',
  },
  EROFS: { reason: 'read-only', says: 'is mounted read-only', remedy: 'Mount it writable, or open another folder.' },
  EACCES: {
    reason: 'no-permission',
    says: 'may not be used by this user',
    remedy: 'Give this user read and write permission on the folder and all it holds, or open another folder.',
  },
  EPERM: {
    reason: 'no-permission',
    says: 'may not be changed by this user, or does not support hard links',
    remedy: 'Give this user read and write permission on a local filesystem with hard links, or open another folder.',
  },
  ENOTDIR: { reason: 'not-a-folder', says: 'is a file, or is inside one', remedy: 'Give the path of a folder.' },
  ENOENT: { reason: 'missing', says: 'is not there', remedy: 'Check that nothing else removes files from the store.' },
  EIO: {
    reason: 'io-error',
    says: 'could not be read or written by the system',
    remedy: 'Check the disk and the system log.',
  },
}

/** A system error as a typed one. `written` says what is known of the write it ended; others pass unchanged. */
export function toStorageError(error: unknown, written: 'nothing' | 'unknown'): unknown {
  if (isHoldfastError(error) || !isSystemError(error)) return error
  const { code, syscall, path = '' } = error
  const data = { code, syscall, path }
  if (code === 'EMFILE' || code === 'ENFILE') {
    return new UnavailableError('Too many files are open at once.', {
      written,
      remedy: 'Raise the limit of open files (ulimit -n), or open fewer stores.',
      data,
      cause: error,
    })
  }
  const { reason, says, remedy } = PROBLEMS[code] ?? {
    reason: 'io-error',
    says: `failed with ${code} in ${syscall}`,
    remedy: 'Check the filesystem that holds the store.',
  }
  return new StorageError(`${path || 'The folder of the store'} ${says}.`, remedy, {
    reason,
    written,
    data,
    cause: error,
  })
}

interface SystemError extends Error {
  readonly code: string
  readonly syscall: string
  readonly path?: string
}

function isSystemError(error: unknown): error is SystemError {
  return error instanceof Error && 'code' in error && 'syscall' in error
}
