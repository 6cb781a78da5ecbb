-- What is due has its turn by priority, then by tenant. `priority` and `limit_key` stand in the metadata, like `program`
-- (0015-due.sql): derived, so that code which knows nothing of them keeps them right.
ALTER TABLE :schema.logs
  ADD COLUMN priority integer GENERATED ALWAYS AS (
    CASE WHEN split_part(split_part(metadata, '["holdfast.priority",', 2), ']', 1) ~ '^-?[0-9]{1,9}$'
    THEN split_part(split_part(metadata, '["holdfast.priority",', 2), ']', 1)::integer ELSE 0 END
  ) STORED,
  ADD COLUMN limit_key text COLLATE "C" GENERATED ALWAYS AS (
    split_part(split_part(metadata, '["holdfast.limit",', 2), ']', 1)
  ) STORED;

DROP INDEX :schema.logs_due;
-- Those marked as due, by the minute, so that an append does not have to move its log here. On expressions, so that no other
-- index fits: see 0015-due.sql.
CREATE INDEX logs_marked ON :schema.logs (program, (priority + 0), (tenant || ''), (updated_minute + 0))
  WHERE wake_at = 0;
-- Those with a time.
CREATE INDEX logs_dated ON :schema.logs (program, (priority + 0), (wake_at + 0)) WHERE wake_at <> 0;

-- until_free: the time at which a log is free, the end of its lease or of what it is kept for; null if nobody has it.
CREATE FUNCTION :schema.until_free(l :schema.logs) RETURNS timestamptz
LANGUAGE sql IMMUTABLE
AS $$
  SELECT greatest(
    CASE WHEN l.lease_owner IS NOT NULL THEN l.lease_until END, CASE WHEN l.taken_seq = l.seq THEN l.taken_until END)
$$;

-- take_due: the logs whose turn it is, reserved for who asks. Rows that another worker is just taking are passed over and
-- not waited for. What is lost with the server is taken again, so nobody waits for the disk.
--
-- In:   programs; the time in milliseconds up to which wake times are over, null for the server's; a tenant or null; how
--       many at most; for how many milliseconds; the tenant whose turn was last, or ''; groups to pass over, as
--       program, tenant and limit key, or tenant alone, between line breaks
-- Out:  a row for each log that was taken, with its turn; then one without a log: whether there may be more, and in how many
--       milliseconds the next may be due
CREATE FUNCTION :schema.take_due(
  programs text[], at_ms double precision, of_tenant text, most integer, reserve_ms double precision,
  after_tenant text, passed text[]
) RETURNS TABLE (head text, turn bigint, more boolean, next_ms double precision)
LANGUAGE plpgsql
SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  moment double precision := coalesce(at_ms, extract(epoch FROM clock_timestamp())::double precision * 1000);
  p text;
  level integer;
  found_level integer;
  whose text;
  wrapped boolean;
  lanes integer;
  rows_found integer;
  of_program integer;
  one record;
  ids bigint[] := '{}';
  levels integer[] := '{}';
  owners text[] := '{}';
  sinces double precision[] := '{}';
  taken integer := 0;
  soonest double precision;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  FOREACH p IN ARRAY programs LOOP
    level := 2147483647;
    of_program := 0;
    WHILE of_program <= most LOOP
      -- The next priority of this program that has anything: one step in each index.
      SELECT max(s.priority) INTO found_level FROM (
        (SELECT l.priority + 0 AS priority FROM :schema.logs l
        WHERE l.program = p AND l.priority + 0 < level AND l.wake_at = 0 ORDER BY l.priority + 0 DESC LIMIT 1)
        UNION ALL
        (SELECT l.priority + 0 FROM :schema.logs l
        WHERE l.program = p AND l.priority + 0 < level AND l.wake_at <> 0 ORDER BY l.priority + 0 DESC LIMIT 1)
      ) s;
      EXIT WHEN found_level IS NULL;
      level := found_level;
      -- Those marked as due, of tenants by turns: one step in the index to the next tenant.
      whose := coalesce(of_tenant, after_tenant);
      wrapped := after_tenant = '';
      lanes := 0;
      LOOP
        IF of_tenant IS NULL THEN
          SELECT l.tenant || '' INTO whose FROM :schema.logs l
          WHERE l.program = p AND l.priority + 0 = level AND l.tenant || '' > whose AND l.wake_at = 0
          ORDER BY l.tenant || '' LIMIT 1;
          IF whose IS NULL THEN
            EXIT WHEN wrapped;
            wrapped := true;
            whose := '';
            CONTINUE;
          END IF;
          EXIT WHEN wrapped AND after_tenant <> '' AND whose > after_tenant;
        END IF;
        rows_found := 0;
        IF NOT (p || E'\n' || whose) = ANY (passed) THEN
          FOR one IN
            SELECT l.id, l.updated_at AS since FROM :schema.logs l
            WHERE l.program = p AND l.priority + 0 = level AND l.tenant || '' = whose AND l.wake_at = 0
              AND coalesce(:schema.until_free(l) <= clock_timestamp(), true)
              AND (l.limit_key = '' OR NOT (p || E'\n' || l.tenant || E'\n' || l.limit_key) = ANY (passed))
            ORDER BY l.updated_minute + 0 LIMIT most + 50
          LOOP
            ids := ids || one.id; levels := levels || level; owners := owners || whose; sinces := sinces || one.since;
            rows_found := rows_found + 1;
          END LOOP;
        END IF;
        of_program := of_program + rows_found;
        IF rows_found > 0 THEN lanes := lanes + 1; END IF;
        EXIT WHEN of_tenant IS NOT NULL OR lanes > most;
      END LOOP;
      -- Those whose time has come: enough of them that tenants have their turns.
      FOR one IN
        SELECT l.id, l.tenant, l.wake_at AS since FROM :schema.logs l
        WHERE l.program = p AND l.priority + 0 = level AND l.wake_at + 0 <= moment AND l.wake_at <> 0
          AND (of_tenant IS NULL OR l.tenant = of_tenant)
          AND coalesce(:schema.until_free(l) <= clock_timestamp(), true)
          AND NOT (p || E'\n' || l.tenant) = ANY (passed)
          AND (l.limit_key = '' OR NOT (p || E'\n' || l.tenant || E'\n' || l.limit_key) = ANY (passed))
        ORDER BY l.wake_at + 0 LIMIT greatest(most + 50, 200)
      LOOP
        ids := ids || one.id; levels := levels || level; owners := owners || one.tenant; sinces := sinces || one.since;
        of_program := of_program + 1;
      END LOOP;
    END LOOP;
  END LOOP;
  IF cardinality(ids) > 0 THEN
    RETURN QUERY
    WITH turns AS MATERIALIZED (
      SELECT c.id, row_number() OVER (ORDER BY c.level DESC, c.round, c.owner <= after_tenant, c.owner) AS turn
      FROM (
        SELECT u.*, row_number() OVER (PARTITION BY u.level, u.owner ORDER BY u.since, u.id) AS round
        FROM unnest(ids, levels, owners, sinces) AS u (id, level, owner, since)
      ) c
    ), free AS MATERIALIZED (
      SELECT l.id, t.turn FROM turns t JOIN :schema.logs l ON l.id = t.id
      WHERE coalesce(:schema.until_free(l) <= clock_timestamp(), true)
      ORDER BY t.turn LIMIT most FOR NO KEY UPDATE OF l SKIP LOCKED
    )
    UPDATE :schema.logs l
    SET taken_seq = l.seq, taken_until = clock_timestamp() + reserve_ms * interval '1 millisecond'
    FROM free f WHERE l.id = f.id
    RETURNING :schema.head_json(l, clock_timestamp())::text, f.turn, NULL::boolean, NULL::double precision;
    GET DIAGNOSTICS taken = ROW_COUNT;
  END IF;
  IF cardinality(ids) <= taken THEN
    FOREACH p IN ARRAY programs LOOP
      SELECT least(soonest, min(n.ms)) INTO soonest FROM (
        SELECT extract(epoch FROM min(:schema.until_free(l)) - clock_timestamp())::double precision * 1000 AS ms
        FROM :schema.logs l
        WHERE l.program = p AND l.wake_at = 0 AND (of_tenant IS NULL OR l.tenant = of_tenant)
          AND :schema.until_free(l) > clock_timestamp()
        UNION ALL
        SELECT extract(epoch FROM min(:schema.until_free(l)) - clock_timestamp())::double precision * 1000
        FROM :schema.logs l
        WHERE l.program = p AND l.wake_at <> 0 AND l.wake_at + 0 <= moment AND (of_tenant IS NULL OR l.tenant = of_tenant)
          AND :schema.until_free(l) > clock_timestamp()
      ) n;
      level := 2147483647;
      LOOP
        SELECT l.priority + 0 INTO level FROM :schema.logs l
        WHERE l.program = p AND l.priority + 0 < level AND l.wake_at <> 0 ORDER BY l.priority + 0 DESC LIMIT 1;
        EXIT WHEN level IS NULL;
        soonest := least(soonest, (
          SELECT l.wake_at + 0 - moment FROM :schema.logs l
          WHERE l.program = p AND l.priority + 0 = level AND l.wake_at + 0 > moment AND l.wake_at <> 0
            AND (of_tenant IS NULL OR l.tenant = of_tenant)
          ORDER BY l.wake_at + 0 LIMIT 1
        ));
      END LOOP;
    END LOOP;
  END IF;
  RETURN QUERY SELECT NULL::text, NULL::bigint, cardinality(ids) > taken, soonest;
END
$$;
