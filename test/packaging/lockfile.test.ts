import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

interface Locked {
  readonly integrity?: string
  readonly resolved?: string
  readonly link?: boolean
}

const { packages } = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')) as {
  readonly packages: Readonly<Record<string, Locked>>
}
const installed = Object.entries(packages).filter(([path, { link }]) => path !== '' && link !== true)

it('has a checksum for every package, binaries of other platforms included', () => {
  expect(installed.length).toBeGreaterThan(300)
  expect(installed.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([path]) => path)).toEqual([])
})

it('names no address that packages come from', () => {
  expect(installed.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([])
})
