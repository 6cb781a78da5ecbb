import { statfs } from 'node:fs/promises'
import type { Survives } from '../../../log/contract.js'

/** Filesystems that matter, by the magic number Linux gives them. */
const TYPES = new Map<number, { readonly name: string; readonly kind: 'memory' | 'network' | 'disk' }>([
  [0x01021994, { name: 'tmpfs', kind: 'memory' }],
  [0x858458f6, { name: 'ramfs', kind: 'memory' }],
  [0x6969, { name: 'nfs', kind: 'network' }],
  [0xff534d42, { name: 'cifs', kind: 'network' }],
  [0xfe534d42, { name: 'smb2', kind: 'network' }],
  [0x01021997, { name: '9p', kind: 'network' }],
  [0x65735546, { name: 'fuse', kind: 'network' }],
  [0xef53, { name: 'ext4', kind: 'disk' }],
  [0x58465342, { name: 'xfs', kind: 'disk' }],
  [0x9123683e, { name: 'btrfs', kind: 'disk' }],
  [0x2fc12fc1, { name: 'zfs', kind: 'disk' }],
  [0x794c7630, { name: 'overlay', kind: 'disk' }],
])

/** The kernel writes back what is older than 30 s, and looks every 5 s. */
const WRITE_BACK_MS = 35_000

/** What an append survives in this folder, given its filesystem and whether we flush. */
export async function probeDurability(root: string, fsync: boolean): Promise<Survives> {
  const type = await filesystemOf(root)
  const settings = { fsync: fsync ? 'on' : 'off', filesystem: type.name }
  const base = { processKill: 'yes', failover: 'not-applicable', settings } as const
  if (type.kind === 'memory') {
    const note =
      'The folder is in memory: an acknowledged append survives the process, and nothing survives the machine.'
    return { ...base, osCrash: 'no', powerLoss: 'no', note }
  }
  if (!fsync) {
    const note = 'Without fsync an acknowledged append survives the process; a crash of the system may take the newest.'
    return { ...base, osCrash: 'recent-loss', powerLoss: 'recent-loss', lossWindowMs: WRITE_BACK_MS, note }
  }
  const warning =
    type.kind === 'network'
      ? ' This looks like a network or user-space filesystem, which may not keep that promise.'
      : ''
  return {
    ...base,
    osCrash: 'yes',
    powerLoss: 'yes',
    note: `An acknowledged append was flushed to the disk with its name.${warning}`,
  }
}

async function filesystemOf(root: string): Promise<{ readonly name: string; readonly kind: string }> {
  if (process.platform !== 'linux') return { name: 'unknown', kind: 'disk' }
  const { type } = await statfs(root)
  // Unsigned: some platforms give the number with its sign.
  return TYPES.get(type >>> 0) ?? { name: `0x${(type >>> 0).toString(16)}`, kind: 'disk' }
}
