import { randomUUID } from 'node:crypto'
import pg from 'pg'

/** A schema that no other test uses. */
export function newSchema(): string {
  return `test_${randomUUID().replaceAll('-', '').slice(0, 16)}`
}

export async function dropSchema(url: string, ...schemas: string[]): Promise<void> {
  await runSql(url, ...schemas.map((schema) => `DROP SCHEMA IF EXISTS "${schema}" CASCADE`))
}

/** Runs statements on a connection of its own and returns the rows of the last one. */
export async function runSql(url: string, ...statements: string[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    let rows: Record<string, unknown>[] = []
    for (const statement of statements) rows = (await client.query(statement)).rows
    return rows
  } finally {
    await client.end()
  }
}
