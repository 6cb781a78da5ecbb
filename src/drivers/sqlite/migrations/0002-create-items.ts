import type { Migration } from '../connection/migrate.js'

export const createItems: Migration = {
  version: 2,
  name: 'create items',
  // Code that does not know of items neither reads nor writes any, and its logs are as they were.
  breaking: false,
  sql: `
-- Like entries in the order of writing: values may be large, and a table clustered by key would carry them through its
-- inner pages. The columns that decide whether an item is wanted come before the value, which is then not read.
CREATE TABLE items (
  id INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  space TEXT NOT NULL,
  key TEXT NOT NULL,
  version TEXT NOT NULL,
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  expires_at REAL,
  -- A line for each field, name and token as JSON: see item-fields.ts.
  fields TEXT NOT NULL,
  value BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX items_place ON items (tenant, space, key);
CREATE INDEX items_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;
`,
}
