import type { Migration } from '../connection/migrate.js'

const LABEL = `'["holdfast.program",'`
const BEHIND = `substr(metadata, instr(metadata, ${LABEL}) + length(${LABEL}))`

export const findDue: Migration = {
  version: 3,
  name: 'find what is due by program',
  // Derived: code that knows nothing of it keeps it right.
  breaking: false,
  sql: `
-- The JSON text of the program's name as it stands in the metadata, up to the first bracket.
ALTER TABLE logs ADD COLUMN program TEXT GENERATED ALWAYS AS (
  CASE WHEN instr(metadata, ${LABEL}) > 0 THEN substr(${BEHIND}, 1, instr(${BEHIND}, ']') - 1) END
) VIRTUAL;
-- For whom it is kept that asked for what is due: as long as the log ends there, and not longer than until then.
ALTER TABLE logs ADD COLUMN taken_seq INTEGER;
ALTER TABLE logs ADD COLUMN taken_boot TEXT;
ALTER TABLE logs ADD COLUMN taken_until REAL;
CREATE INDEX logs_due ON logs (program, wake_at) WHERE wake_at IS NOT NULL;
`,
}
