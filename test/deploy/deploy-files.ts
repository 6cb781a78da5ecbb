import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'

export const folder = fileURLToPath(new URL('../../deploy', import.meta.url))

export const read = (path: string): string => readFileSync(join(folder, path), 'utf8')

export interface Service {
  readonly command?: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly stop_grace_period?: string
  readonly healthcheck: { readonly test: readonly string[] }
  readonly build?: { readonly dockerfile: string }
}

export function readCompose(): Readonly<Record<string, Service>> {
  return (parse(read('compose.yaml'), { merge: true }) as { services: Record<string, Service> }).services
}

interface HttpProbe {
  readonly httpGet: { readonly path: string; readonly port: string }
}

export interface Container {
  readonly name: string
  readonly args: readonly string[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly env: readonly { readonly name: string; readonly value?: string }[]
  readonly startupProbe?: HttpProbe
  readonly livenessProbe: HttpProbe
  readonly readinessProbe: HttpProbe
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } }
}

/** Any object of Kubernetes, as far as it is looked at. */
export interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own.
  readonly spec: any
}

export function readManifests(): readonly Manifest[] {
  const files = readdirSync(join(folder, 'kubernetes')).filter((name) => name !== 'kustomization.yaml')
  return files.flatMap((name) =>
    parseAllDocuments(read(`kubernetes/${name}`)).map((document) => {
      if (document.errors.length > 0) throw document.errors[0]
      return document.toJS() as Manifest
    }),
  )
}

export const containersOf = ({ spec }: Manifest): readonly Container[] => spec.template.spec.containers

/** `25s` as seconds. */
export const seconds = (text: string | undefined): number => Number(/^(\d+)s$/.exec(text ?? '')?.[1])
