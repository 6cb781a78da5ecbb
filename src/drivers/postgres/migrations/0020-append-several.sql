-- append_several: what append_one does (0004-append-one.sql), for several entries of one log. A claim that brings an input,
-- with which a run begins, is two. The arrays of `append` for everything else cost as much as the writes.
--
-- In:   as for append_one, with arrays for the entries, which follow expect_seq
-- Out:  as for record_step (0019-record-step.sql)
CREATE FUNCTION :schema.append_several(
  log_tenant text, log_thread text, log_branch text, expect_seq bigint, expect_hash bytea, expect_epoch bigint,
  log_incarnation text, new_epoch bigint, lease text, new_owner text, lease_ms double precision,
  new_status text, new_created double precision, new_updated double precision,
  new_expires double precision, new_wake double precision, new_tags text, new_metadata text,
  new_origin_branch text, new_origin_incarnation text, new_origin_seq bigint, new_origin_hash bytea,
  keyframes bigint[], hashes bytea[], headers bytea[], bodies bytea[]
) RETURNS text
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
  entries integer := array_length(hashes, 1);
  landed bigint;
  listening text;
  answer record;
BEGIN
  UPDATE :schema.logs AS l SET
    seq = expect_seq + entries, hash = hashes[entries], epoch = new_epoch,
    lease_owner = CASE WHEN lease IN ('claim', 'force') THEN new_owner ELSE l.lease_owner END,
    lease_until = CASE lease
      WHEN 'keep' THEN l.lease_until
      WHEN 'release' THEN clock_timestamp()
      ELSE clock_timestamp() + lease_ms * interval '1 millisecond' END,
    status = new_status, created_at = new_created, updated_at = new_updated, expires_at = new_expires,
    wake_at = new_wake, tags = new_tags, metadata = new_metadata, origin_branch = new_origin_branch,
    origin_incarnation = new_origin_incarnation, origin_seq = new_origin_seq, origin_hash = new_origin_hash,
    updated_minute = floor(new_updated / 60000), expires_minute = floor(new_expires / 60000),
    program = :schema.program_in(new_metadata), priority = :schema.priority_in(new_metadata),
    limit_key = :schema.limit_key_in(new_metadata)
  WHERE l.tenant = log_tenant AND l.thread = log_thread AND l.branch = log_branch
    AND l.incarnation = log_incarnation AND l.seq = expect_seq AND l.hash = expect_hash AND l.epoch = expect_epoch
    AND (lease <> 'claim' OR l.lease_owner IS NULL OR l.lease_until <= clock_timestamp())
  RETURNING l.id,
    CASE WHEN EXISTS (SELECT FROM :schema.listeners w WHERE w.until > clock_timestamp()) THEN '+' ELSE '-' END
  INTO landed, listening;
  IF landed IS NOT NULL THEN
    INSERT INTO :schema.entries (log_id, seq, keyframe, hash, header, body)
    SELECT landed, expect_seq + e.i, e.keyframe, e.hash, e.header, e.body
    FROM unnest(keyframes, hashes, headers, bodies) WITH ORDINALITY AS e (keyframe, hash, header, body, i);
    RETURN listening;
  END IF;
  SELECT a.failed, a.listening INTO answer FROM :schema.append(
    ARRAY[log_tenant], ARRAY[log_thread], ARRAY[log_branch],
    ARRAY[expect_seq], ARRAY[expect_hash], ARRAY[expect_epoch],
    ARRAY[log_incarnation], ARRAY[new_epoch], ARRAY[NULL::text], ARRAY[NULL::text],
    ARRAY[lease], ARRAY[new_owner], ARRAY[lease_ms],
    ARRAY[new_status], ARRAY[new_created], ARRAY[new_updated],
    ARRAY[new_expires], ARRAY[new_wake], ARRAY[new_tags], ARRAY[new_metadata],
    ARRAY[new_origin_branch], ARRAY[new_origin_incarnation], ARRAY[new_origin_seq], ARRAY[new_origin_hash],
    ARRAY[1], ARRAY[entries], ARRAY[false],
    ARRAY(SELECT expect_seq + i FROM generate_series(1, entries) AS i), keyframes, hashes, headers, bodies,
    '{}', '{}'
  ) AS a;
  RETURN CASE WHEN answer.listening THEN '+' ELSE '-' END || coalesce(answer.failed, '');
END
$$;
