-- A log is left for a moment to whoever held it last, whose state of it is warm.

-- until_free_for: the time at which a log is free for who asks: when it is free for everybody, and later if it became due
-- just now, since its last owner released it, and that is somebody else. Null if nobody has it.
CREATE FUNCTION :schema.until_free_for(
  l :schema.logs, asker text, leave_ms double precision, moment double precision
) RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
  SELECT greatest(:schema.until_free(l), (
    SELECT clock_timestamp() + (leave_ms - d.ago) * interval '1 millisecond'
    FROM (SELECT moment - CASE WHEN l.wake_at = 0 THEN l.updated_at ELSE l.wake_at END AS ago) d
    WHERE leave_ms > 0 AND l.lease_owner <> asker AND d.ago < leave_ms AND d.ago > -leave_ms
      AND clock_timestamp() - d.ago * interval '1 millisecond' > l.lease_until
  ))
$$;

-- As in 0016-take-due.sql. The new parameters have defaults, for processes that do not know them.
DROP FUNCTION :schema.take_due(text[], double precision, text, integer, double precision, text, text[]);
-- take_due: the logs whose turn it is, reserved for who asks. Rows that another worker is just taking are passed over and
-- not waited for. What is lost with the server is taken again, so nobody waits for the disk.
--
-- In:   programs; the time in milliseconds up to which wake times are over, null for the server's; a tenant or null; how
--       many at most; for how many milliseconds; the tenant whose turn was last, or ''; groups to pass over, as
--       program, tenant and limit key, or tenant alone, between line breaks; who asks, and for how many milliseconds a log
--       that became due is left to another owner who held it last
-- Out:  a row for each log that was taken, with its turn; then one without a log: whether there may be more, and in how many
--       milliseconds the next may be due
CREATE FUNCTION :schema.take_due(
  programs text[], at_ms double precision, of_tenant text, most integer, reserve_ms double precision,
  after_tenant text, passed text[], asker text DEFAULT NULL, leave_ms double precision DEFAULT 0
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
              AND coalesce(:schema.until_free_for(l, asker, leave_ms, moment) <= clock_timestamp(), true)
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
          AND coalesce(:schema.until_free_for(l, asker, leave_ms, moment) <= clock_timestamp(), true)
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
      WHERE coalesce(:schema.until_free_for(l, asker, leave_ms, moment) <= clock_timestamp(), true)
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
        SELECT extract(epoch FROM min(:schema.until_free_for(l, asker, leave_ms, moment)) - clock_timestamp())::double precision * 1000 AS ms
        FROM :schema.logs l
        WHERE l.program = p AND l.wake_at = 0 AND (of_tenant IS NULL OR l.tenant = of_tenant)
          AND :schema.until_free_for(l, asker, leave_ms, moment) > clock_timestamp()
        UNION ALL
        SELECT extract(epoch FROM min(:schema.until_free_for(l, asker, leave_ms, moment)) - clock_timestamp())::double precision * 1000
        FROM :schema.logs l
        WHERE l.program = p AND l.wake_at <> 0 AND l.wake_at + 0 <= moment AND (of_tenant IS NULL OR l.tenant = of_tenant)
          AND :schema.until_free_for(l, asker, leave_ms, moment) > clock_timestamp()
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
