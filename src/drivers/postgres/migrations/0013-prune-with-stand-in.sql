-- prune_with: removes every entry before one and moves the base there, with a keyframe in that entry's place.
--
-- In:   the log, its incarnation, the seq, and the keyframe: the hash that both have, its header and body
-- Out:  how many entries were removed; null for 'conflict'
CREATE FUNCTION :schema.prune_with(
  prune_tenant text, prune_thread text, prune_branch text, prune_incarnation text, prune_seq bigint,
  own_hash bytea, new_header bytea, new_body bytea
) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
  found_log :schema.logs;
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
  UPDATE :schema.entries e SET keyframe = prune_seq, header = new_header, body = new_body
  WHERE e.log_id = found_log.id AND e.seq = prune_seq AND e.hash = own_hash;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  DELETE FROM :schema.entries e WHERE e.log_id = found_log.id AND e.seq < prune_seq;
  GET DIAGNOSTICS removed = ROW_COUNT;
  UPDATE :schema.logs l SET base_seq = prune_seq, base_hash = own_hash WHERE l.id = found_log.id;
  RETURN removed;
END
$$;
