-- append_one: the append of a sequential step, at about two thirds of what `append` costs for a batch of one: one
-- entry, to a log that exists, with its labels as they were.
--
-- In:   as for append, but plain values; the lease is 'keep', 'claim', 'force', 'extend' or 'release'
-- Out:  as for append, which also answers when this one did not land
CREATE FUNCTION :schema.append_one(
  log_tenant text, log_thread text, log_branch text, expect_seq bigint, expect_hash bytea, expect_epoch bigint,
  log_incarnation text, new_epoch bigint, lease text, new_owner text, lease_ms double precision,
  new_status text, new_created double precision, new_updated double precision,
  new_expires double precision, new_wake double precision, new_tags text, new_metadata text,
  new_origin_branch text, new_origin_incarnation text, new_origin_seq bigint, new_origin_hash bytea,
  entry_keyframe bigint, entry_hash bytea, entry_header bytea, entry_body bytea,
  OUT failed text, OUT listening boolean
)
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
  landed bigint;
BEGIN
  UPDATE :schema.logs AS l SET
    seq = expect_seq + 1, hash = entry_hash, epoch = new_epoch,
    lease_owner = CASE WHEN lease IN ('claim', 'force') THEN new_owner ELSE l.lease_owner END,
    lease_until = CASE lease
      WHEN 'keep' THEN l.lease_until
      WHEN 'release' THEN clock_timestamp()
      ELSE clock_timestamp() + lease_ms * interval '1 millisecond' END,
    status = new_status, created_at = new_created, updated_at = new_updated, expires_at = new_expires,
    wake_at = new_wake, tags = new_tags, metadata = new_metadata, origin_branch = new_origin_branch,
    origin_incarnation = new_origin_incarnation, origin_seq = new_origin_seq, origin_hash = new_origin_hash
  WHERE l.tenant = log_tenant AND l.thread = log_thread AND l.branch = log_branch
    AND l.incarnation = log_incarnation AND l.seq = expect_seq AND l.hash = expect_hash AND l.epoch = expect_epoch
    AND (lease <> 'claim' OR l.lease_owner IS NULL OR l.lease_until <= clock_timestamp())
  RETURNING l.id, EXISTS (SELECT FROM :schema.listeners w WHERE w.until > clock_timestamp()) INTO landed, listening;
  IF landed IS NOT NULL THEN
    INSERT INTO :schema.entries (log_id, seq, keyframe, hash, header, body)
    VALUES (landed, expect_seq + 1, entry_keyframe, entry_hash, entry_header, entry_body);
  ELSE
    SELECT a.failed, a.listening INTO failed, listening FROM :schema.append(
      ARRAY[log_tenant], ARRAY[log_thread], ARRAY[log_branch],
      ARRAY[expect_seq], ARRAY[expect_hash], ARRAY[expect_epoch],
      ARRAY[log_incarnation], ARRAY[new_epoch], ARRAY[NULL::text], ARRAY[NULL::text],
      ARRAY[lease], ARRAY[new_owner], ARRAY[lease_ms],
      ARRAY[new_status], ARRAY[new_created], ARRAY[new_updated],
      ARRAY[new_expires], ARRAY[new_wake], ARRAY[new_tags], ARRAY[new_metadata],
      ARRAY[new_origin_branch], ARRAY[new_origin_incarnation], ARRAY[new_origin_seq], ARRAY[new_origin_hash],
      ARRAY[1], ARRAY[1], ARRAY[false],
      ARRAY[expect_seq + 1], ARRAY[entry_keyframe], ARRAY[entry_hash], ARRAY[entry_header], ARRAY[entry_body],
      '{}', '{}'
    ) AS a;
  END IF;
END
$$;
