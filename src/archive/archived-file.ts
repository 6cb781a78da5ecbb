import type { TenantId, ThreadId } from '../core/ids.js'
import type { LogKey } from '../log/contract.js'
import { placeName } from './place.js'
import type { SegmentHead } from './segment.js'

/** One archived file. */
export interface ArchivedFile extends SegmentHead {
  readonly name: string
  /** Of the file, compressed. */
  readonly bytes: number
}

export const FILE = '.hfa'

export function folderOf(tenant: TenantId, thread?: ThreadId): string {
  return thread === undefined ? `threads/${placeName(tenant)}/` : `threads/${placeName(tenant)}/${placeName(thread)}/`
}

export function branchFolder({ tenant, thread, branch }: LogKey, incarnation: string): string {
  return `${folderOf(tenant, thread)}${placeName(branch)}/${placeName(incarnation)}`
}

export function fileName(head: SegmentHead): string {
  const pad = (seq: number): string => String(seq).padStart(12, '0')
  return `${branchFolder(head, head.incarnation)}/${pad(head.first)}-${pad(head.last)}${FILE}`
}

export function aboutName(name: string): string {
  return name.replace(/\.hfa$/, '.json')
}
