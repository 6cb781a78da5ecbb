CREATE TABLE schema_versions (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  breaking INTEGER NOT NULL,
  applied_at REAL NOT NULL
) STRICT;

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
, program TEXT GENERATED ALWAYS AS (
  CASE WHEN instr(metadata, '["holdfast.program",') > 0 THEN substr(substr(metadata, instr(metadata, '["holdfast.program",') + length('["holdfast.program",')), 1, instr(substr(metadata, instr(metadata, '["holdfast.program",') + length('["holdfast.program",')), ']') - 1) END
) VIRTUAL, taken_seq INTEGER, taken_boot TEXT, taken_until REAL, priority INTEGER GENERATED ALWAYS AS (
  CASE WHEN instr(metadata, '["holdfast.priority",') > 0 THEN CAST(substr(substr(metadata, instr(metadata, '["holdfast.priority",') + length('["holdfast.priority",')), 1, instr(substr(metadata, instr(metadata, '["holdfast.priority",') + length('["holdfast.priority",')), ']') - 1) AS INTEGER) ELSE 0 END
) VIRTUAL, limit_key TEXT GENERATED ALWAYS AS (
  CASE WHEN instr(metadata, '["holdfast.limit",') > 0 THEN substr(substr(metadata, instr(metadata, '["holdfast.limit",') + length('["holdfast.limit",')), 1, instr(substr(metadata, instr(metadata, '["holdfast.limit",') + length('["holdfast.limit",')), ']') - 1) END
) VIRTUAL, updated_minute INTEGER) STRICT;

CREATE UNIQUE INDEX logs_name ON logs (tenant, thread, branch);

CREATE INDEX logs_created ON logs (created_at);

CREATE INDEX logs_tenant_created ON logs (tenant, created_at);

CREATE INDEX logs_status ON logs (status, created_at);

CREATE INDEX logs_wake ON logs (wake_at) WHERE wake_at IS NOT NULL;

CREATE INDEX logs_expiry ON logs (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX logs_leased ON logs (lease_boot) WHERE lease_boot IS NOT NULL;

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

CREATE TABLE labels (
  log INTEGER NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (log, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX labels_value ON labels (name, value, log);

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

CREATE TABLE last_touch (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  at REAL NOT NULL
) STRICT;

CREATE TABLE tombstones (
  tenant TEXT NOT NULL,
  thread TEXT NOT NULL,
  at REAL NOT NULL,
  -- JSON text.
  reason TEXT NOT NULL,
  PRIMARY KEY (tenant, thread)
) STRICT, WITHOUT ROWID;

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

CREATE INDEX logs_dated ON logs (program, priority, wake_at) WHERE wake_at <> 0;

CREATE INDEX logs_tenant_updated ON logs (tenant, updated_minute);

CREATE INDEX logs_marked ON logs (program, priority, tenant, updated_minute) WHERE wake_at = 0;

CREATE TRIGGER logs_minute AFTER UPDATE OF updated_at ON logs WHEN NEW.updated_minute IS NOT CAST(NEW.updated_at / 60000 AS INTEGER)
BEGIN
  UPDATE logs SET updated_minute = CAST(NEW.updated_at / 60000 AS INTEGER) WHERE id = NEW.id;
END;

CREATE TRIGGER logs_first_minute AFTER INSERT ON logs WHEN NEW.updated_minute IS NULL
BEGIN
  UPDATE logs SET updated_minute = CAST(NEW.updated_at / 60000 AS INTEGER) WHERE id = NEW.id;
END;
