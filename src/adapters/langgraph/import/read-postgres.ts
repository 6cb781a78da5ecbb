import { MissingDependencyError } from '../../../errors.js'
import { type LangGraphSource, notLangGraph, type SourceCheckpoint, type SourceWrite } from './source.js'

type Row = Readonly<Record<string, unknown>>

/** The part of `pg` that is used here. */
interface PoolLike {
  query(sql: string, values?: readonly unknown[]): Promise<{ readonly rows: Row[] }>
  end(): Promise<void>
}

/** A schema of `@langchain/langgraph-checkpoint-postgres`. Only read. */
export async function openPostgresSource(url: string): Promise<LangGraphSource> {
  const address = new URL(url)
  const schema = address.searchParams.get('schema') ?? 'public'
  address.searchParams.delete('schema')
  const { Pool } = await loadPg()
  const pool = new Pool({ connectionString: address.href, max: 2 })
  const table = (name: string): string => `"${schema.replaceAll('"', '""')}".${name}`
  const has = async (name: string): Promise<boolean> =>
    (await pool.query('SELECT to_regclass($1) AS found', [table(name)])).rows[0]?.['found'] != null
  try {
    for (const name of ['checkpoints', 'checkpoint_blobs', 'checkpoint_writes']) {
      if (!(await has(name))) throw notLangGraph(`in schema "${schema}"`, name)
    }
  } catch (error) {
    await pool.end()
    throw error
  }
  return {
    name: 'Postgres',
    threads: async (after, limit) => {
      const sql = `SELECT DISTINCT thread_id COLLATE "C" AS id FROM ${table('checkpoints')}
        WHERE thread_id COLLATE "C" > $1 ORDER BY id LIMIT $2`
      return (await pool.query(sql, [after ?? '', limit])).rows.map(({ id }) => String(id))
    },
    checkpoints: async (thread) => {
      const blobs = await pool.query(
        `SELECT checkpoint_ns, channel, version, type, blob FROM ${table('checkpoint_blobs')} WHERE thread_id = $1`,
        [thread],
      )
      const byPlace = new Map(
        blobs.rows.map((row) => [placeOf(row['checkpoint_ns'], row['channel'], row['version']), row]),
      )
      const found = await pool.query(
        `SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata FROM ${table('checkpoints')}
         WHERE thread_id = $1 ORDER BY checkpoint_id COLLATE "C", checkpoint_ns COLLATE "C"`,
        [thread],
      )
      return found.rows.map((row) => readCheckpoint(row, byPlace))
    },
    writes: async (thread) => {
      const found = await pool.query(
        `SELECT checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob FROM ${table('checkpoint_writes')}
         WHERE thread_id = $1 ORDER BY checkpoint_id COLLATE "C", task_id, idx`,
        [thread],
      )
      return found.rows.map(readWrite)
    },
    besides: async () => {
      if (!(await has('store'))) return []
      const { rows } = await pool.query(`SELECT count(*) AS n FROM ${table('store')}`)
      const count = Number(rows[0]?.['n'])
      return count === 0 ? [] : [`${count} items of its store: put them into HoldfastStore yourself`]
    },
    close: () => pool.end(),
  }
}

async function loadPg(): Promise<{ readonly Pool: new (options: object) => PoolLike }> {
  try {
    const module = (await import('pg')) as unknown as {
      readonly default: { readonly Pool: new (o: object) => PoolLike }
    }
    return module.default
  } catch (cause) {
    throw new MissingDependencyError('pg', 'npm install pg', { cause })
  }
}

/** A channel value is kept once for each version of its channel, and a checkpoint names the versions that it has. */
function readCheckpoint(row: Row, blobs: ReadonlyMap<string, Row>): SourceCheckpoint {
  const checkpoint = row['checkpoint'] as { readonly channel_versions?: Readonly<Record<string, unknown>> }
  const values = new Map()
  for (const [channel, version] of Object.entries(checkpoint.channel_versions ?? {})) {
    const blob = blobs.get(placeOf(row['checkpoint_ns'], channel, version))
    if (blob === undefined || blob['type'] === 'empty') continue
    values.set(channel, { type: String(blob['type']), bytes: blob['blob'] as Uint8Array })
  }
  return {
    ns: String(row['checkpoint_ns']),
    id: String(row['checkpoint_id']),
    parent: row['parent_checkpoint_id'] == null ? undefined : String(row['parent_checkpoint_id']),
    checkpoint: { json: checkpoint },
    metadata: { json: row['metadata'] },
    values,
  }
}

function readWrite(row: Row): SourceWrite {
  return {
    ns: String(row['checkpoint_ns']),
    checkpoint: String(row['checkpoint_id']),
    task: String(row['task_id']),
    index: Number(row['idx']),
    channel: String(row['channel']),
    value: { type: row['type'] == null ? 'json' : String(row['type']), bytes: row['blob'] as Uint8Array },
  }
}

function placeOf(ns: unknown, channel: unknown, version: unknown): string {
  return JSON.stringify([String(ns), String(channel), String(version)])
}
