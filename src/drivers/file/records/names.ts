import { createHash } from 'node:crypto'

// Folder names end at 255 bytes; what follows an id in a name needs room as well.
const MAX_NAME = 160
const SLOT_DIGITS = 16
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/

/**
 * An id as the name of a folder. Only lower-case letters, digits, `_`, `-` and inner dots stand for themselves; every
 * other byte becomes `%xx`. So no id leads out of its folder, two ids never collide on a filesystem that ignores case
 * or normalizes Unicode, and no name is one that Windows reserves for devices. A long id is shortened to its beginning
 * and a hash: the whole id is written in the records inside and compared there.
 */
export function encodeName(id: string): string {
  const bytes = Buffer.from(id)
  const device = RESERVED.test(id)
  let name = ''
  for (const [i, byte] of bytes.entries()) {
    const edge = i === 0 || i === bytes.length - 1
    const plain = isPlain(byte) && !(byte === 0x2e && edge) && !(device && i === 0)
    name += plain ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, '0')}`
  }
  if (name.length <= MAX_NAME) return name
  // `%~` begins no escape, so a shortened name is never the full name of another id.
  const start = name.slice(0, 60).replace(/%.?$/, '')
  return `${start}%~${createHash('sha256').update(bytes).digest('hex')}`
}

/**
 * The id that a name stands for. Undefined for a shortened one, whose records say what it is, and for a name that is
 * not ours.
 */
export function decodeName(name: string): string | undefined {
  if (/^[a-z0-9_-]+$/.test(name) && !RESERVED.test(name)) return name
  if (isShortened(name)) return undefined
  const bytes = name.replace(/%([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  const id = Buffer.from(bytes, 'latin1').toString('utf8')
  return encodeName(id) === name ? id : undefined
}

/** Whether a name is the beginning of a long id and a hash. */
export function isShortened(name: string): boolean {
  return /%~[0-9a-f]{64}$/.test(name)
}

function isPlain(byte: number): boolean {
  return (
    (byte >= 0x61 && byte <= 0x7a) || (byte >= 0x30 && byte <= 0x39) || byte === 0x2e || byte === 0x5f || byte === 0x2d
  )
}

/** The name of a record's file. */
export function slotName(slot: number): string {
  return `${String(slot).padStart(SLOT_DIGITS, '0')}.rec`
}

/** The slot of a record's file; undefined for any other file, which is left alone. */
export function parseSlot(name: string): number | undefined {
  return /^\d{16}\.rec$/.test(name) ? Number(name.slice(0, SLOT_DIGITS)) : undefined
}

/** Identifies the process that wrote something unfinished, so that others can tell when nobody will finish it. */
export function writerName(bootId: string, pid: number, unique: string): string {
  return `${shortBoot(bootId)}-${pid}-${unique}`
}

/** True when the process of this name can't be running anymore; false when it may be, or the name is another's. */
export function isWriterGone(name: string, bootId: string, isAlive: (pid: number) => boolean): boolean {
  const parts = /^([0-9a-f]{8})-(\d+)-[0-9a-f]+$/.exec(name)
  if (parts === null) return false
  return parts[1] !== shortBoot(bootId) || !isAlive(Number(parts[2]))
}

function shortBoot(bootId: string): string {
  return createHash('sha256').update(bootId).digest('hex').slice(0, 8)
}
