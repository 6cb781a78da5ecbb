import type { ItemScan, NewItem } from '../../../log/store-contract.js'
import type { SqlValue } from '../connection/engine.js'

/**
 * The fields of an item as one text: a line break, then a line such as `"colour":"red"` for each. JSON escapes line
 * breaks and quotes, so a name or token can't imitate the beginning or the end of a line, whatever is in it. Rows of
 * their own would make a write with 16 fields cost 17 rows, and could not be searched by an index anyway: items
 * without the field stay in a scan.
 */
export function fieldLines(fields: NewItem['fields']): string {
  return `\n${fields.map(([name, token]) => `${lineStart(name)}${JSON.stringify(token)}\n`).join('')}`
}

/** The fields of such a text. */
export function readFieldLines(lines: string): NewItem['fields'] {
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(`[${line.replace(/^("(?:[^"\\]|\\.)*"):/, '$1,')}]`) as [string, string])
}

/** True in SQL for an item that has no field of that name, or one of the tokens in it. Everything is bound. */
export const FIELD_FITS = `(instr(fields, ?) = 0
  OR EXISTS (SELECT 1 FROM json_each(?) AS line WHERE instr(fields, line.value) > 0))`

export function fieldFitsValues([name, tokens]: NonNullable<ItemScan['where']>[number]): SqlValue[] {
  const start = `\n${lineStart(name)}`
  return [start, JSON.stringify(tokens.map((token) => `${start}${JSON.stringify(token)}\n`))]
}

function lineStart(name: string): string {
  return `${JSON.stringify(name)}:`
}
