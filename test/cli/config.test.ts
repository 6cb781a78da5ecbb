import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { holdfast } from './command.js'

// A config module is run as whoever works below it. These look whether it was.

const me = process.getuid?.() ?? 1000
const STRANGER = me + 4711

let top: string
let ran: string

beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-config-')))
  ran = join(top, 'ran')
})

afterEach(() => rmSync(top, { recursive: true, force: true }))

/** Leaves a trace when it is run. */
function plant(...folder: string[]): string {
  const path = join(top, ...folder, 'holdfast.config.mjs')
  mkdirSync(join(top, ...folder), { recursive: true })
  const content = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(ran)}, 'x'); export default { store: 'memory:' }`
  writeFileSync(path, content)
  return path
}

async function threads(
  folder: string[],
  options: { args?: string[]; uid?: number; env?: Record<string, string> } = {},
) {
  const cwd = join(top, ...folder)
  mkdirSync(cwd, { recursive: true })
  rmSync(ran, { force: true })
  const { args = [], uid, env } = options
  const ended = await holdfast(['threads', ...args], {
    cwd,
    ...(uid === undefined ? {} : { uid }),
    ...(env ? { env } : {}),
  })
  return { ...ended, ran: existsSync(ran) }
}

describe('a config module', () => {
  it('is run from the project that one works in, and not from above it', async () => {
    plant('shared')
    mkdirSync(join(top, 'shared', 'project', 'src'), { recursive: true })
    writeFileSync(join(top, 'shared', 'project', 'package.json'), '{}')
    expect(await threads(['shared', 'project', 'src'])).toMatchObject({ code: 2, ran: false })
    plant('shared', 'project')
    expect(await threads(['shared', 'project', 'src'])).toMatchObject({ ran: true })
  })

  it('is not looked for above a folder of no project', async () => {
    plant('shared')
    expect(await threads(['shared', 'work', 'deep'])).toMatchObject({ code: 2, ran: false })
    expect(await threads(['shared'])).toMatchObject({ ran: true })
  })

  it('stops at the root of a repository, too', async () => {
    plant('shared')
    mkdirSync(join(top, 'shared', 'clone', '.git'), { recursive: true })
    expect(await threads(['shared', 'clone', 'src'])).toMatchObject({ code: 2, ran: false })
  })

  it('is not run where the store is named', async () => {
    plant('project')
    expect(await threads(['project'], { args: ['--store', 'memory:'] })).toMatchObject({ code: 0, ran: false })
    expect(await threads(['project'], { env: { HOLDFAST_STORE: 'memory:' } })).toMatchObject({ code: 0, ran: false })
  })

  it('is run where it is named', async () => {
    const path = plant('elsewhere')
    const store = ['--store', 'memory:']
    expect(await threads(['project'], { args: ['--config', path, ...store] })).toMatchObject({ code: 0, ran: true })
    const other = plant('another')
    expect(await threads(['project'], { env: { HOLDFAST_CONFIG: other } })).toMatchObject({ code: 0, ran: true })
  })

  it.skipIf(process.platform === 'win32')('of another user is refused, and named', async () => {
    const path = plant('project')
    // What root owns is trusted, so that as root the file is given away; otherwise somebody else looks at it.
    if (me === 0) chownSync(path, STRANGER, STRANGER)
    const [owner, uid] = me === 0 ? [STRANGER, 0] : [me, STRANGER]
    const ended = await threads(['project'], { uid })
    expect(ended).toMatchObject({ code: 2, ran: false, err: expect.stringContaining(`another user (uid ${owner})`) })
    expect(ended.err).toContain(`--config ${path}`)
    expect(await threads(['project'], { uid, args: ['--config', path] })).toMatchObject({ ran: true })
  })

  it.skipIf(process.platform === 'win32')('that everybody may write to is refused', async () => {
    const path = plant('project')
    chmodSync(path, 0o666)
    expect(await threads(['project'])).toMatchObject({ code: 2, ran: false, err: expect.stringContaining('everybody') })
    chmodSync(path, 0o644)
    chmodSync(join(top, 'project'), 0o777)
    expect(await threads(['project'])).toMatchObject({ code: 2, ran: false })
    // As in /tmp: who may write there can't replace what is somebody else's.
    chmodSync(join(top, 'project'), 0o1777)
    expect(await threads(['project'])).toMatchObject({ ran: true })
  })

  it.skipIf(process.platform === 'win32')(
    'that a link leads to counts by its owner and by that of the link',
    async () => {
      const path = plant('own')
      mkdirSync(join(top, 'project'))
      symlinkSync(path, join(top, 'project', 'holdfast.config.mjs'))
      expect(await threads(['project'])).toMatchObject({ ran: true })
      chmodSync(path, 0o666)
      expect(await threads(['project'])).toMatchObject({ code: 2, ran: false })
    },
  )
})

describe('a plain config file', () => {
  it('names the tenant also where the store is named', async () => {
    mkdirSync(join(top, 'project'))
    writeFileSync(
      join(top, 'project', 'holdfast.config.json'),
      JSON.stringify({ store: 'file:none', tenant: 'bad/../id\u0000' }),
    )
    // Seen by the complaint about the tenant.
    expect(await threads(['project'], { args: ['--store', 'memory:'] })).toMatchObject({
      err: expect.stringMatching(/tenant/),
    })
  })
})
