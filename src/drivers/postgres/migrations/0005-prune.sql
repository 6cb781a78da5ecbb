-- prune: removes every entry before a keyframe and moves the base there.
--
-- In:   the log, its incarnation, and the seq of the keyframe
-- Out:  how many entries were removed; null for 'conflict'
CREATE FUNCTION :schema.prune(
  prune_tenant text, prune_thread text, prune_branch text, prune_incarnation text, prune_seq bigint
) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
  found_log :schema.logs;
  new_hash bytea;
  removed bigint;
BEGIN
  SELECT * INTO found_log FROM :schema.logs l
  WHERE l.tenant = prune_tenant AND l.thread = prune_thread AND l.branch = prune_branch
  FOR NO KEY UPDATE;
  IF found_log.id IS NULL OR found_log.incarnation <> prune_incarnation THEN
    RETURN NULL;
  END IF;
  IF prune_seq <= found_log.base_seq THEN
    RETURN 0;
  END IF;
  SELECT e.hash INTO new_hash FROM :schema.entries e
  WHERE e.log_id = found_log.id AND e.seq = prune_seq AND e.keyframe = prune_seq;
  IF new_hash IS NULL THEN
    RETURN NULL;
  END IF;
  DELETE FROM :schema.entries e WHERE e.log_id = found_log.id AND e.seq < prune_seq;
  GET DIAGNOSTICS removed = ROW_COUNT;
  UPDATE :schema.logs l SET base_seq = prune_seq, base_hash = new_hash WHERE l.id = found_log.id;
  RETURN removed;
END
$$;
