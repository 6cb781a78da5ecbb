import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { COMMANDS } from '#src/cli/commands.js'
import { parse } from 'yaml'
import { describe, expect, it } from 'vitest'
import { containersOf, folder, type Manifest, read, readCompose, readManifests, seconds } from './deploy-files.js'

const entry = read('entry.sh')
/** What the entry script reads, with what it takes where nothing is set. */
const variables = new Map([...entry.matchAll(/\$\{(HOLDFAST_\w+):-([^}]*)\}/g)].map(([, name, value]) => [name, value]))
/** What the command line reads by itself. */
const OF_THE_CLI = ['HOLDFAST_STORE', 'HOLDFAST_TOKEN']
const documented = new Set([...entry.matchAll(/^# +(HOLDFAST_\w+) /gm)].map(([, name]) => name))
const manifests = readManifests()
const deployments = manifests.filter(({ kind }) => kind === 'Deployment')
const find = (kind: string, name: string) =>
  manifests.find((one) => one.kind === kind && one.metadata.name === name) as Manifest

describe('the entry script', () => {
  it('says what each variable means that it reads, and reads no other', () => {
    const used = new Set([...entry.matchAll(/\$\{(HOLDFAST_\w+)/g)].map(([, name]) => name))
    used.delete('HOLDFAST_BIN')
    expect([...documented].sort()).toEqual([...new Set([...used, ...OF_THE_CLI])].sort())
  })

  it('passes only options that its commands have', () => {
    for (const role of ['worker', 'serve']) {
      const [, line = ''] = new RegExp(`exec "\\$holdfast" ${role} ([^]*?)"\\$@"`).exec(entry) ?? []
      const known = COMMANDS.find(({ usage }) => usage.startsWith(`${role} `))?.options ?? []
      const names = known.map(([flags]) => flags.split(' ')[0])
      const passed = line.match(/--[a-z-]+/g) ?? []
      expect(passed.length).toBeGreaterThan(2)
      expect(names).toEqual(expect.arrayContaining(passed))
    }
  })
})

describe('the image', () => {
  const steps = read('Dockerfile')
    .split('\n')
    .filter((line) => /^[A-Z]/.test(line))
  const last = steps.slice(steps.findLastIndex((line) => line.startsWith('FROM ')))
  const of = (word: string) =>
    last.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))

  it('installs in a stage of its own, and runs the entry script as somebody who is not root', () => {
    expect(steps.filter((line) => line.startsWith('FROM '))).toHaveLength(2)
    expect(of('USER')).toEqual(['node'])
    expect(of('WORKDIR')).toEqual(['/app'])
    expect(of('ENTRYPOINT').map((list) => JSON.parse(list))).toEqual([['/app/deploy/entry.sh']])
    expect(of('CMD').map((list) => JSON.parse(list))).toEqual([['worker']])
    expect(of('STOPSIGNAL')).toEqual(['SIGTERM'])
  })

  it('shows the ports that the entry script listens on', () => {
    const ports = [variables.get('HOLDFAST_HEALTH')?.slice(1), variables.get('HOLDFAST_PORT')]
    expect(of('EXPOSE').flatMap((list) => list.split(' '))).toEqual(ports)
  })
})

describe('the compose file', () => {
  const services = readCompose()

  it('sets only variables that the entry script knows', () => {
    for (const name of ['server', 'worker']) {
      const set = Object.keys(services[name]?.environment ?? {})
      expect(set).toContain('HOLDFAST_STORE')
      expect([...documented]).toEqual(expect.arrayContaining(set))
      expect(services[name]?.build?.dockerfile).toBe('deploy/Dockerfile')
    }
  })

  it('waits longer for a worker than its steps may take, and names the port of the server', () => {
    const { worker, server } = services
    expect(seconds(worker?.stop_grace_period)).toBeGreaterThan(seconds(worker?.environment['HOLDFAST_GRACE']))
    const port = variables.get('HOLDFAST_PORT')
    expect(server?.ports).toEqual([`127.0.0.1:${port}:${port}`])
  })
})

describe('the Kubernetes manifests', () => {
  it('are all applied by the kustomization', () => {
    const { resources } = parse(read('kubernetes/kustomization.yaml')) as { resources: string[] }
    const files = readdirSync(join(folder, 'kubernetes')).filter((name) => name !== 'kustomization.yaml')
    expect(resources.toSorted()).toEqual(files.sort())
  })

  it.each(deployments.map((one) => [one.metadata.name, one] as const))('%s agrees with the entry script', (_, one) => {
    const [container] = containersOf(one)
    const env = new Map(container?.env.map(({ name, value }) => [name, value]))
    expect([...documented]).toEqual(expect.arrayContaining([...env.keys()]))
    const [{ name, containerPort } = { name: '', containerPort: 0 }] = container?.ports ?? []
    const isWorker = container?.args[0] === 'worker'
    expect(String(containerPort)).toBe(isWorker ? env.get('HOLDFAST_HEALTH')?.slice(1) : env.get('HOLDFAST_PORT'))
    const probes = [container?.startupProbe, container?.livenessProbe, container?.readinessProbe]
    for (const probe of probes) expect(probe?.httpGet.port ?? name).toBe(name)
    const service = find('Service', one.metadata.name)
    expect(service.spec.ports).toEqual([{ name, port: containerPort, targetPort: name }])
    expect(service.spec.selector).toEqual(one.spec.template.metadata.labels)
    const budget = find('PodDisruptionBudget', one.metadata.name)
    expect(budget.spec.selector.matchLabels).toEqual(one.spec.template.metadata.labels)
    const { terminationGracePeriodSeconds: patience, securityContext } = one.spec.template.spec
    const stopping = Number(container?.lifecycle.preStop.exec.command.at(-1))
    expect(patience).toBeGreaterThan(stopping + (isWorker ? seconds(env.get('HOLDFAST_GRACE')) : 0) + 5)
    expect(securityContext.runAsNonRoot).toBe(true)
  })

  it('scale workers by the age of the queue that any of them tells', () => {
    const { spec } = find('ScaledObject', 'holdfast-worker')
    const [trigger] = spec.triggers
    const url = new URL(trigger.metadata.url)
    // Whoever asks does so from another namespace.
    const [name, namespace, ...domain] = url.hostname.split('.')
    expect([namespace, ...domain]).toEqual(['default', 'svc'])
    const service = find('Service', name as string)
    expect(String(service.spec.ports[0].port)).toBe(url.port)
    expect(spec.scaleTargetRef.name).toBe(name)
    expect([url.pathname, trigger.metadata.valueLocation]).toEqual(['/queue', 'oldestSeconds'])
    expect(spec.minReplicaCount).toBeGreaterThan(0)
  })
})
