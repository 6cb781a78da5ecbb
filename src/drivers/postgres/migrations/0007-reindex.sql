-- reindex: replaces the index row of a log, but not its lease, if the log still ends where it is expected to.
--
-- In:   the log; expect_*: where it must end; the index row; labels: all label rows it shall have
-- Out:  whether it was replaced
CREATE FUNCTION :schema.reindex(
  log_tenant text, log_thread text, log_branch text,
  expect_incarnation text, expect_seq bigint, expect_hash bytea, expect_epoch bigint,
  new_status text, new_created double precision, new_updated double precision,
  new_expires double precision, new_wake double precision, new_tags text, new_metadata text,
  new_origin_branch text, new_origin_incarnation text, new_origin_seq bigint, new_origin_hash bytea,
  new_labels bytea[]
) RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
  found_id bigint;
BEGIN
  UPDATE :schema.logs AS l SET
    status = new_status, created_at = new_created, updated_at = new_updated, expires_at = new_expires,
    wake_at = new_wake, tags = new_tags, metadata = new_metadata, origin_branch = new_origin_branch,
    origin_incarnation = new_origin_incarnation, origin_seq = new_origin_seq, origin_hash = new_origin_hash
  WHERE l.tenant = log_tenant AND l.thread = log_thread AND l.branch = log_branch
    AND l.incarnation = expect_incarnation AND l.seq = expect_seq AND l.hash = expect_hash AND l.epoch = expect_epoch
  RETURNING l.id INTO found_id;
  IF found_id IS NULL THEN
    RETURN false;
  END IF;
  DELETE FROM :schema.labels WHERE log_id = found_id;
  INSERT INTO :schema.labels (log_id, label) SELECT found_id, n FROM unnest(new_labels) AS n;
  RETURN true;
END
$$;
