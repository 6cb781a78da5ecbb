import { checkStatement, POSTGRES_DIALECT, SQLITE_DIALECT } from '#src/drivers/shared/sql-check.js'
import { describe, expect, it } from 'vitest'

describe('the check of statements', () => {
  const both = [
    ['SQLite', SQLITE_DIALECT],
    ['Postgres', POSTGRES_DIALECT],
  ] as const

  it.each(both)('takes what belongs into a transaction, for %s', (_, dialect) => {
    for (const sql of [
      'SELECT 1',
      '  select 1 ;; ',
      '-- a comment; COMMIT\nINSERT INTO t VALUES (1)',
      '/* a; */ WITH x AS (SELECT 1) SELECT * FROM x',
      "UPDATE t SET a = 'it''s; COMMIT' WHERE \"b; \" = 1",
      `INSERT INTO t VALUES ('${'x;'.repeat(2_000_000)}')`,
    ]) {
      expect(() => checkStatement(sql, dialect), sql.slice(0, 50)).not.toThrow()
    }
  })

  it.each(both)('refuses what does not, for %s', (_, dialect) => {
    for (const sql of [
      'COMMIT',
      '/**/commit/**/',
      'SELECT 1; SELECT 2',
      "SELECT ''; COMMIT; SELECT ''",
      'SELECT 1 /* ; */ ; ROLLBACK',
      '"select" 1; COMMIT',
      'VACUUM',
      'EXPLAIN SELECT 1',
      "'select'",
      '',
      '--',
    ]) {
      const refused = () => checkStatement(sql, dialect)
      expect(refused, sql).toThrow(expect.objectContaining({ code: 'transaction' }))
    }
    expect(() => checkStatement(undefined, dialect)).toThrow(expect.objectContaining({ code: 'invalid-value' }))
  })

  it('knows the ways in which Postgres writes texts', () => {
    for (const text of ["E'\\'; COMMIT'", '$$; COMMIT$$', "$a$ $$ ; ' $b$ $a$", "U&'; \\0041'"]) {
      expect(() => checkStatement(`SELECT ${text}`, POSTGRES_DIALECT), text).not.toThrow()
    }
    for (const text of ["'\\'; COMMIT", '$1; COMMIT', "e'\\\\'; COMMIT"]) {
      expect(() => checkStatement(`SELECT ${text}`, POSTGRES_DIALECT), text).toThrow(/more than one statement/)
    }
  })

  it('knows the ways in which SQLite writes names', () => {
    expect(checkStatement('SELECT `a``;`, [b;], "c"";" FROM T', SQLITE_DIALECT).tokens).toEqual([
      'select',
      'a`;',
      ',',
      'b;',
      ',',
      'c";',
      'from',
      't',
    ])
  })
})
