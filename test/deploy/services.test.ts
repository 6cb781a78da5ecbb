import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HoldfastClient } from 'holdfast/client'
import { openHoldfast } from 'holdfast'
import { afterAll, afterEach, expect, it } from 'vitest'
import { collect, untilReady, userEnv } from '../cli/command.js'
import { durableBackends } from '../support/backends.js'
import { until } from '../support/until.js'
import { containersOf, folder, type Manifest, readCompose, readManifests } from './deploy-files.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const backends = await durableBackends()
const postgres = backends.find(({ name }) => name === 'Postgres')
const project = mkdtempSync(join(tmpdir(), 'holdfast-deploy-'))
const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})
afterAll(() => rmSync(project, { recursive: true, force: true }))

/** As the image has it: a project with its packages, its programs, and the files of deploy/. */
function makeProject(): void {
  mkdirSync(join(project, 'node_modules', '.bin'), { recursive: true })
  symlinkSync(root, join(project, 'node_modules', 'holdfast'), 'dir')
  symlinkSync(join(root, 'dist', 'cli', 'main.js'), join(project, 'node_modules', '.bin', 'holdfast'))
  cpSync(folder, join(project, 'deploy'), { recursive: true })
  cpSync(fileURLToPath(new URL('gated-programs.mjs', import.meta.url)), join(project, 'programs.mjs'))
}

/** A service of the compose file as a process: its command, given to the entry script, with its variables. */
async function start(service: string, set: Readonly<Record<string, string>>) {
  const { command = [], environment } = readCompose()[service] as ReturnType<typeof readCompose>[string]
  const given = Object.entries({ ...environment, ...set }).map(([name, value]) => [name, fill(value)])
  const child = spawn('sh', [join(project, 'deploy', 'entry.sh'), ...command, '--json'], {
    cwd: project,
    env: { ...userEnv(), ...Object.fromEntries(given) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const ready = await untilReady<{ url: string; healthPort: number; pid: number }>(child)
  return { child, ended, ready, checks: (from: string, to: string) => healthcheck(service, from, to) }
}

/** `${NAME:-value}` as compose fills it in where nothing is set. */
const fill = (text: string): string => text.replaceAll(/\$\{\w+:[-?]([^}]*)\}/g, '$1')

/** Runs what compose would run in the container, at the port that the test was given. */
async function healthcheck(service: string, from: string, to: string): Promise<number | null> {
  const [kind, command = '', ...args] = readCompose()[service]?.healthcheck.test ?? []
  expect([kind, command]).toEqual(['CMD', 'node'])
  expect(args.join(' ')).toContain(from)
  const { code } = await collect(
    spawn(
      process.execPath,
      args.map((arg) => arg.replace(from, to)),
    ),
  )
  return code
}

const probes = (role: string) =>
  readManifests()
    .filter(({ kind }) => kind === 'Deployment')
    .flatMap(containersOf)
    .filter(({ name }) => name === role)
    .flatMap(({ startupProbe, livenessProbe, readinessProbe }) => [startupProbe, livenessProbe, readinessProbe])
    .flatMap((probe) => (probe ? [probe.httpGet.path] : []))

it.skipIf(postgres?.missing ?? true)(
  'the services of the compose file work together, and a worker that is stopped hands its thread over',
  { timeout: 600_000 },
  async () => {
    makeProject()
    const store = { HOLDFAST_STORE: (await postgres?.fresh()) as string }
    const token = 'token-of-the-test'
    const server = await start('server', { ...store, HOLDFAST_TOKEN: token, HOLDFAST_PORT: '0' })
    const health = { HOLDFAST_HEALTH: '127.0.0.1:0' }
    const first = await start('worker', { ...store, ...health })
    const at = (path: string) => fetch(`http://127.0.0.1:${first.ready.healthPort}${path}`)

    // What Kubernetes and compose ask is answered. The port is another one here.
    const { port } = new URL(server.ready.url)
    for (const path of probes('server')) expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(200)
    for (const path of probes('worker')) await until(async () => (await at(path)).status === 200)
    expect(await server.checks(':8787/', `:${port}/`)).toBe(0)
    await until(async () => (await first.checks(':8080/', `:${first.ready.healthPort}/`)) === 0)
    const [scaled] = readManifests().filter(({ kind }) => kind === 'ScaledObject')
    const { url, valueLocation } = (scaled as Manifest).spec.triggers[0].metadata as Record<
      'url' | 'valueLocation',
      string
    >
    const queue = (await (await at(new URL(url).pathname)).json()) as Record<string, unknown>
    expect(queue[valueLocation]).toBe(0)

    // Work that comes in over HTTP is done by the worker: the server runs nothing itself.
    const gate = join(project, 'gate')
    const client = new HoldfastClient({ baseUrl: `http://127.0.0.1:${port}`, token })
    await client.thread('t').start({ program: 'gated', input: { gate } })
    const busy = async () => ((await (await at('/live')).json()) as { busy: number }).busy
    await until(async () => (await busy()) === 1)
    // A thread that was taken and not begun would be handed over at once.
    await until(async () => existsSync(`${gate}-t`))

    first.child.kill('SIGTERM')
    await until(async () => (await at('/ready')).status === 503)
    expect((await at('/live')).status).toBe(200)
    const second = await start('worker', { ...store, ...health })
    await client.thread('later').start({ program: 'gated', input: { gate } })
    await using hf = await openHoldfast(store.HOLDFAST_STORE, { telemetry: false })
    // The one that is left takes what comes, while the other waits for its step.
    await until(async () => existsSync(`${gate}-later`))
    expect((await hf.threads({ lease: 'held' })).threads).toHaveLength(2)
    writeFileSync(gate, '')
    expect(await first.ended).toBe(0)
    const outcomes = await Promise.all(['t', 'later'].map((id) => hf.inspect(id).waitFor({ timeoutMs: 60_000 })))
    expect(outcomes.map(({ status }) => status)).toEqual(['completed', 'completed'])
    expect(outcomes[1]).toMatchObject({ output: second.ready.pid })

    for (const one of [server, second]) one.child.kill('SIGTERM')
    expect(await Promise.all([server.ended, second.ended])).toEqual([0, 0])
  },
)
