-- Fills in the groups of statuses, and whatever else is derived: an append that waited for the migrations before this one
-- was still in the functions that they replaced (0018-lean-appends.sql, 0022-status-groups.sql), and left it as it was. In
-- a transaction of its own, which waits for those appends in turn.
--
-- Code that does not know of groups finds logs by their status as before, without an index.
DROP INDEX :schema.logs_status_created;
ALTER TABLE :schema.logs
  ALTER COLUMN status_group TYPE text COLLATE "C" USING :schema.status_group_in(status),
  ALTER COLUMN updated_minute TYPE double precision USING floor(updated_at / 60000),
  ALTER COLUMN expires_minute TYPE double precision USING floor(expires_at / 60000),
  ALTER COLUMN program TYPE text COLLATE "C" USING :schema.program_in(metadata),
  ALTER COLUMN priority TYPE integer USING :schema.priority_in(metadata),
  ALTER COLUMN limit_key TYPE text COLLATE "C" USING :schema.limit_key_in(metadata);
CREATE INDEX logs_group_created ON :schema.logs (status_group, created_at);
