import { HttpProblem } from './problem.js'
import type { Schema } from './route.js'

/** The query string as values of the types that the schemas name. */
export function readQuery(
  params: URLSearchParams,
  schemas: Readonly<Record<string, Schema>>,
): Readonly<Record<string, unknown>> {
  const query: Record<string, unknown> = {}
  for (const name of new Set(params.keys())) {
    const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined
    if (schema === undefined) throw unknown(name, Object.keys(schemas))
    const values = params.getAll(name)
    if (schema['type'] === 'array') query[name] = values
    else if (values.length > 1) throw wrong(name, 'is given twice')
    else query[name] = readValue(name, values[0] ?? '', schema)
  }
  return query
}

function readValue(name: string, text: string, schema: Schema): unknown {
  switch (schema['type']) {
    case 'integer':
      if (/^-?\d{1,15}$/.test(text)) return Number(text)
      throw wrong(name, `must be a whole number, not "${text.slice(0, 50)}"`)
    case 'boolean':
      if (text === 'true' || text === 'false') return text === 'true'
      throw wrong(name, `must be true or false, not "${text.slice(0, 50)}"`)
    default:
      return text
  }
}

function wrong(name: string, problem: string): HttpProblem {
  return new HttpProblem(400, 'invalid-option', `The query parameter ${name} ${problem}.`, { fields: { field: name } })
}

function unknown(name: string, known: readonly string[]): HttpProblem {
  const remedy = known.length === 0 ? 'Send none.' : `Use any of: ${known.join(', ')}.`
  return new HttpProblem(400, 'invalid-option', `The query parameter "${name.slice(0, 50)}" is not recognized.`, {
    remedy,
    fields: { field: name.slice(0, 50) },
  })
}
