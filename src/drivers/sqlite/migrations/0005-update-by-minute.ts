import type { Migration } from '../connection/migrate.js'

const MINUTE = 'CAST(NEW.updated_at / 60000 AS INTEGER)'

export const updateByMinute: Migration = {
  version: 5,
  name: 'know updates by the minute',
  // Derived: code that knows nothing of it keeps it right, and finds indexes by the names that it asks for.
  breaking: false,
  sql: `
-- An index on the time itself is written by every append. A column of its own, and not an expression: SQLite would write
-- the index whenever the time is, also where the minute is the same.
ALTER TABLE logs ADD COLUMN updated_minute INTEGER;
UPDATE logs SET updated_minute = CAST(updated_at / 60000 AS INTEGER);
DROP INDEX logs_tenant_updated;
CREATE INDEX logs_tenant_updated ON logs (tenant, updated_minute);
DROP INDEX logs_marked;
CREATE INDEX logs_marked ON logs (program, priority, tenant, updated_minute) WHERE wake_at = 0;
CREATE TRIGGER logs_minute AFTER UPDATE OF updated_at ON logs WHEN NEW.updated_minute IS NOT ${MINUTE}
BEGIN
  UPDATE logs SET updated_minute = ${MINUTE} WHERE id = NEW.id;
END;
CREATE TRIGGER logs_first_minute AFTER INSERT ON logs WHEN NEW.updated_minute IS NULL
BEGIN
  UPDATE logs SET updated_minute = ${MINUTE} WHERE id = NEW.id;
END;
`,
}
