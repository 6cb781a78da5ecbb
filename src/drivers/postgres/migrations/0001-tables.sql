-- The tables. Bytes are bytea and never jsonb, which reorders keys and refuses NUL and lone surrogates. Text that
-- decides identity or order is compared byte by byte (collation "C"), whatever the database's locale. No foreign
-- keys: their checks would cost every append two more index visits for what the functions below keep anyway.

-- One row per log: where it ends, who holds it, and what the thread index shows of it.
CREATE TABLE :schema.logs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  thread text COLLATE "C" NOT NULL,
  branch text COLLATE "C" NOT NULL,
  incarnation text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  hash bytea NOT NULL,
  epoch bigint NOT NULL,
  base_seq bigint NOT NULL,
  base_hash bytea NOT NULL,
  -- The last owner, also after its lease ended: the owner may renew as long as nobody else came.
  lease_owner text,
  -- By the server's clock.
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  status text COLLATE "C" NOT NULL,
  -- Milliseconds since 1970, as the caller gave them.
  created_at double precision NOT NULL,
  updated_at double precision NOT NULL,
  expires_at double precision,
  wake_at double precision,
  -- An index on updated_at itself would make every append rewrite all index entries of its row (no heap-only
  -- update). This one changes once a minute.
  updated_minute double precision GENERATED ALWAYS AS (floor(updated_at / 60000)) STORED,
  expires_minute double precision GENERATED ALWAYS AS (floor(expires_at / 60000)) STORED,
  -- JSON text: tag names; metadata by name. What `labels` holds is derived from these two.
  tags text NOT NULL,
  metadata text NOT NULL,
  origin_branch text COLLATE "C",
  origin_incarnation text COLLATE "C",
  origin_seq bigint,
  origin_hash bytea,
  UNIQUE (tenant, thread, branch)
) WITH (fillfactor = 70);

CREATE INDEX logs_created ON :schema.logs (created_at);
-- On an expression, so that only the unique index fits a search for a log by its name: a plan made while the table
-- was empty would as soon walk through all logs of the tenant, and is kept for as long as the session lasts.
CREATE INDEX logs_tenant_created ON :schema.logs ((tenant || ''), created_at);
CREATE INDEX logs_tenant_updated ON :schema.logs ((tenant || ''), updated_minute);
CREATE INDEX logs_status_created ON :schema.logs (status, created_at);
CREATE INDEX logs_updated ON :schema.logs (updated_minute);
CREATE INDEX logs_wake ON :schema.logs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX logs_expires ON :schema.logs (expires_minute) WHERE expires_minute IS NOT NULL;

-- One row per entry. Bodies are compressed before they come here, so trying again would only cost time.
CREATE TABLE :schema.entries (
  log_id bigint NOT NULL,
  seq bigint NOT NULL,
  keyframe bigint NOT NULL,
  hash bytea NOT NULL,
  header bytea NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (log_id, seq)
);
ALTER TABLE :schema.entries ALTER COLUMN body SET STORAGE EXTERNAL;

-- One row per tag and per metadata value: the SHA-256 of its kind, name and JSON value, so that 1, "1" and true
-- differ and a value of any length can be indexed.
CREATE TABLE :schema.labels (
  log_id bigint NOT NULL,
  label bytea NOT NULL,
  PRIMARY KEY (label, log_id)
);
CREATE INDEX labels_log ON :schema.labels (log_id);

-- What an erased thread left behind.
CREATE TABLE :schema.tombstones (
  tenant text COLLATE "C" NOT NULL,
  thread text COLLATE "C" NOT NULL,
  at double precision NOT NULL,
  reason text NOT NULL,
  PRIMARY KEY (tenant, thread)
);

-- Large values, once per tenant.
CREATE TABLE :schema.blobs (
  tenant text COLLATE "C" NOT NULL,
  hash bytea NOT NULL,
  -- Microseconds since 1970 by the server's clock, strictly growing for a blob.
  touched_us bigint NOT NULL,
  size bigint NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (tenant, hash)
);
ALTER TABLE :schema.blobs ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Processes that watch. A writer notifies only while there is one: see `listening` in the append function.
CREATE TABLE :schema.listeners (
  id text COLLATE "C" PRIMARY KEY,
  until timestamptz NOT NULL
);
CREATE INDEX listeners_until ON :schema.listeners (until);
