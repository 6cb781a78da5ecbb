import type { Migration } from '../connection/migrate.js'

export const createTables: Migration = {
  version: 1,
  name: 'create tables',
  breaking: true,
  sql: `
CREATE TABLE logs (
  -- AUTOINCREMENT: an id that came back after an erase could meet entries or labels of the log that had it before.
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  thread TEXT NOT NULL,
  branch TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  seq INTEGER NOT NULL,
  hash BLOB NOT NULL,
  epoch INTEGER NOT NULL,
  base_seq INTEGER NOT NULL,
  base_hash BLOB NOT NULL,
  -- JSON text of the last owner, kept when its lease ends, because a renewal may bring it back.
  lease_owner TEXT,
  -- NULL while no lease was granted since the last release.
  lease_boot TEXT,
  lease_until REAL,
  lease_ms REAL,
  status TEXT NOT NULL,
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  expires_at REAL,
  wake_at REAL,
  tags TEXT NOT NULL,
  metadata TEXT NOT NULL,
  origin TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX logs_name ON logs (tenant, thread, branch);
CREATE INDEX logs_created ON logs (created_at);
CREATE INDEX logs_tenant_created ON logs (tenant, created_at);
CREATE INDEX logs_tenant_updated ON logs (tenant, updated_at);
CREATE INDEX logs_status ON logs (status, created_at);
CREATE INDEX logs_wake ON logs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX logs_expiry ON logs (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX logs_leased ON logs (lease_boot) WHERE lease_boot IS NOT NULL;

-- In the order of writing, not of logs: the entries of a batch fill pages side by side at the end of the table, where
-- a table clustered by log would write (and split) a page or more for each. A fold goes through the index.
CREATE TABLE entries (
  id INTEGER PRIMARY KEY,
  log INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  keyframe INTEGER NOT NULL,
  hash BLOB NOT NULL,
  header BLOB NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX entries_place ON entries (log, seq);

-- Tags ('t' and the name as JSON, value '') and metadata ('m' and the key as JSON, value as JSON), for filters.
CREATE TABLE labels (
  log INTEGER NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (log, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX labels_value ON labels (name, value, log);

-- The bytes have a table of their own, so that a touch does not rewrite a megabyte.
CREATE TABLE blobs (
  tenant TEXT NOT NULL,
  hash BLOB NOT NULL,
  touched_at REAL NOT NULL,
  size INTEGER NOT NULL,
  id INTEGER NOT NULL,
  PRIMARY KEY (tenant, hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE blob_bytes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  bytes BLOB NOT NULL
) STRICT;
-- The newest touch ever given: a blob that was removed and put again must not look like the one that was removed.
CREATE TABLE last_touch (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  at REAL NOT NULL
) STRICT;
INSERT INTO last_touch (id, at) VALUES (1, 0);

CREATE TABLE tombstones (
  tenant TEXT NOT NULL,
  thread TEXT NOT NULL,
  at REAL NOT NULL,
  -- JSON text.
  reason TEXT NOT NULL,
  PRIMARY KEY (tenant, thread)
) STRICT, WITHOUT ROWID;
`,
}
