import { InvalidValueError, TransactionError } from '../../core/errors.js'

/** What sets the SQL of one database apart, as far as a check of statements needs it. */
export interface Dialect {
  /** The first words of statements that may be part of a transaction. All others are refused. */
  readonly allowed: ReadonlySet<string>
  readonly token: RegExp
}

/** What a look at a statement tells. Names are in lower case and without their quotes. */
export interface SqlStatement {
  readonly first: string
  readonly tokens: readonly string[]
}

const COMMON = ['select', 'values', 'with', 'insert', 'update', 'delete', 'create', 'alter', 'drop']
const NAME = '[\\p{L}_][\\p{L}\\p{N}_$]*'
const SPACE = '\\s+|--[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$)'
// Loops over a class of characters, not over alternatives: those would need memory for every character of a long text.
const TEXT = "'[^']*(?:''[^']*)*'"
const QUOTED = '"[^"]*(?:""[^"]*)*"'
const BACKTICKED = '`[^`]*(?:``[^`]*)*`'
const ESCAPED_TEXT = "[eE]'[^'\\\\]*(?:(?:''|\\\\[^])[^'\\\\]*)*'"
const DOLLAR_QUOTED = `\\$(${NAME})?\\$[\\s\\S]*?\\$\\1\\$`

export const SQLITE_DIALECT: Dialect = {
  allowed: new Set([...COMMON, 'replace']),
  token: new RegExp(`${SPACE}|${TEXT}|${QUOTED}|${BACKTICKED}|\\[[^\\]]*\\]|${NAME}|[^]`, 'gu'),
}

export const POSTGRES_DIALECT: Dialect = {
  allowed: new Set([...COMMON, 'table', 'merge', 'truncate', 'lock', 'call']),
  token: new RegExp(`${SPACE}|${ESCAPED_TEXT}|${TEXT}|${QUOTED}|${DOLLAR_QUOTED}|${NAME}|[^]`, 'gu'),
}

/**
 * Refuses what would end the transaction, change its connection for whoever gets it next, or is not one statement.
 * This guards against mistakes. It does not follow functions, triggers and views.
 */
export function checkStatement(sql: unknown, dialect: Dialect): SqlStatement {
  if (typeof sql !== 'string') throw new InvalidValueError('sql', 'must be a string', 'Pass one SQL statement.')
  const tokens = [...sql.matchAll(dialect.token)].map(([token]) => token).filter((token) => !isSpace(token))
  const end = tokens.indexOf(';')
  if (end !== -1 && tokens.slice(end).some((token) => token !== ';')) {
    throw forbidden('There is more than one statement in one query.', 'Send one statement after another.', { sql })
  }
  const names = (end === -1 ? tokens : tokens.slice(0, end)).map(nameOf)
  const first = names[0] ?? ''
  if (!dialect.allowed.has(first)) {
    throw forbidden(
      first === '' ? 'The query is empty.' : `A statement that begins with ${first.toUpperCase()} can't be part of it.`,
      `The transaction begins and ends by itself; use ${[...dialect.allowed].join(', ').toUpperCase()}.`,
      { sql },
    )
  }
  return { first, tokens: names }
}

/** Refuses a statement that would reach what belongs to Holdfast. */
export function ownTables(sql: string, what: string): TransactionError {
  return forbidden(`The statement reaches ${what}, which belongs to Holdfast.`, 'Use your own tables.', { sql })
}

function forbidden(message: string, remedy: string, data: Readonly<Record<string, unknown>>): TransactionError {
  return new TransactionError('forbidden', message, remedy, { data })
}

function isSpace(token: string): boolean {
  return /^\s|^--|^\/\*/.test(token)
}

function nameOf(token: string): string {
  const quote = token[0] as string
  if (token.length > 1 && '"`['.includes(quote))
    return token
      .slice(1, -1)
      .replaceAll(quote + quote, quote)
      .toLowerCase()
  return token.toLowerCase()
}
