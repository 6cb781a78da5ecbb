import type { Migration } from '../connection/migrate.js'

/** What stands behind a label in the metadata, up to the first bracket. */
const behind = (label: string) => {
  const start = `'["${label}",'`
  const rest = `substr(metadata, instr(metadata, ${start}) + length(${start}))`
  return { isThere: `instr(metadata, ${start}) > 0`, text: `substr(${rest}, 1, instr(${rest}, ']') - 1)` }
}
const priority = behind('holdfast.priority')
const limit = behind('holdfast.limit')

export const takeTurns: Migration = {
  version: 4,
  name: 'take turns by priority and tenant',
  // Derived: code that knows nothing of it keeps it right. Only the order of what is due by 0.1 is another.
  breaking: false,
  sql: `
ALTER TABLE logs ADD COLUMN priority INTEGER GENERATED ALWAYS AS (
  CASE WHEN ${priority.isThere} THEN CAST(${priority.text} AS INTEGER) ELSE 0 END
) VIRTUAL;
ALTER TABLE logs ADD COLUMN limit_key TEXT GENERATED ALWAYS AS (
  CASE WHEN ${limit.isThere} THEN ${limit.text} END
) VIRTUAL;
DROP INDEX logs_due;
-- Those marked as due: by the minute, so that an append does not have to move its log here each time.
CREATE INDEX logs_marked ON logs (program, priority, tenant, updated_at / 60000) WHERE wake_at = 0;
-- Those with a time.
CREATE INDEX logs_dated ON logs (program, priority, wake_at) WHERE wake_at <> 0;
`,
}
