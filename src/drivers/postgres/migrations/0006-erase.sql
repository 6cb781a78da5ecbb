-- erase: removes one branch or all branches of a thread, with all they hold but blobs.
--
-- In:   the thread; a branch, or null for all
--       expect_branches, expect_incarnations, expect_seqs: exactly the logs that may be there, or null for whatever is
--       tombstone_at, tombstone_reason: left behind when the last branch goes; a null time leaves nothing
-- Out:  how many logs were erased; null for 'conflict'
CREATE FUNCTION :schema.erase(
  erase_tenant text, erase_thread text, erase_branch text,
  expect_branches text[], expect_incarnations text[], expect_seqs bigint[],
  tombstone_at double precision, tombstone_reason text
) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
  ids bigint[] := '{}';
  matching bigint := 0;
  found_log :schema.logs;
BEGIN
  -- Before any row lock, as in append: nothing of this thread is created meanwhile.
  PERFORM pg_advisory_xact_lock(:schema.thread_lock(erase_tenant, erase_thread));
  FOR found_log IN
    SELECT * FROM :schema.logs l
    WHERE l.tenant = erase_tenant AND l.thread = erase_thread AND (erase_branch IS NULL OR l.branch = erase_branch)
    ORDER BY l.branch
    FOR UPDATE
  LOOP
    ids := ids || found_log.id;
    IF EXISTS (
      SELECT FROM unnest(expect_branches, expect_incarnations, expect_seqs) AS e (branch, incarnation, seq)
      WHERE e.branch = found_log.branch AND e.incarnation = found_log.incarnation AND e.seq = found_log.seq
    ) THEN
      matching := matching + 1;
    END IF;
  END LOOP;
  IF expect_branches IS NOT NULL AND (matching <> cardinality(ids) OR matching <> cardinality(expect_branches)) THEN
    RETURN NULL;
  END IF;

  DELETE FROM :schema.entries WHERE log_id = ANY (ids);
  DELETE FROM :schema.labels WHERE log_id = ANY (ids);
  DELETE FROM :schema.logs WHERE id = ANY (ids);
  IF NOT EXISTS (SELECT FROM :schema.logs l WHERE l.tenant = erase_tenant AND l.thread = erase_thread) THEN
    IF tombstone_at IS NULL THEN
      DELETE FROM :schema.tombstones t WHERE t.tenant = erase_tenant AND t.thread = erase_thread;
    ELSIF cardinality(ids) > 0 THEN
      INSERT INTO :schema.tombstones AS t (tenant, thread, at, reason)
      VALUES (erase_tenant, erase_thread, tombstone_at, tombstone_reason)
      ON CONFLICT (tenant, thread) DO UPDATE SET at = excluded.at, reason = excluded.reason;
    END IF;
  END IF;
  RETURN cardinality(ids);
END
$$;
