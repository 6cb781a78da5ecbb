import { readFileSync } from 'node:fs'
import { nativeOpenApi } from 'holdfast/server'
import { expect, it } from 'vitest'

it('has its document committed as it is served', () => {
  const committed = new URL('../../docs/openapi.json', import.meta.url)
  // Written anew by: node -e "import('holdfast/server').then((s) => console.log(JSON.stringify(s.nativeOpenApi())))"
  expect(JSON.parse(readFileSync(committed, 'utf8'))).toEqual(nativeOpenApi())
})

it('names each operation once, and every schema that it refers to', () => {
  const document = nativeOpenApi() as {
    paths: Record<string, Record<string, { operationId: string }>>
    components: { schemas: object }
  }
  const names = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  )
  expect(new Set(names).size).toBe(names.length)
  const refs = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(
    ([, name]) => name as string,
  )
  expect(refs.filter((name) => !(name in document.components.schemas))).toEqual([])
  expect(Object.keys(document.components.schemas).filter((name) => !refs.includes(name))).toEqual([])
})
