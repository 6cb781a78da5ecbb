-- Fills in the groups of statuses, and whatever else is derived: an append that waited for the migrations before this one
-- was still in the functions that they replaced (0018-lean-appends.sql, 0022-status-groups.sql), and left it as it was. In
-- a transaction of its own, which waits for those appends: for their locks, and first of all for whatever calls began
-- before it. One that waits for its thread, which is being erased, holds no lock of these yet.
--
-- Code that does not know of groups finds logs by their status as before, without an index.
DO $$
BEGIN
  WHILE EXISTS (
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
      AND state = 'active' AND query_start < now() AND strpos(query, ':schema.') > 0
  ) LOOP
    PERFORM pg_sleep(0.01);
    PERFORM pg_stat_clear_snapshot();
  END LOOP;
END $$;
DROP INDEX :schema.logs_status_created;
ALTER TABLE :schema.logs
  ALTER COLUMN status_group TYPE text COLLATE "C" USING :schema.status_group_in(status),
  ALTER COLUMN updated_minute TYPE double precision USING floor(updated_at / 60000),
  ALTER COLUMN expires_minute TYPE double precision USING floor(expires_at / 60000),
  ALTER COLUMN program TYPE text COLLATE "C" USING :schema.program_in(metadata),
  ALTER COLUMN priority TYPE integer USING :schema.priority_in(metadata),
  ALTER COLUMN limit_key TYPE text COLLATE "C" USING :schema.limit_key_in(metadata);
CREATE INDEX logs_group_created ON :schema.logs (status_group, created_at);
