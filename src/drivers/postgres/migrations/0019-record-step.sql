-- What append_step does, as an expression: a function in FROM has its row stored and read again. Older code goes on with
-- append_step.
--
-- In:   as for append_step (0018-lean-appends.sql)
-- Out:  '+' if somebody listens and '-' if not, and behind it what `failed` of append says, nothing if it landed
CREATE FUNCTION :schema.record_step(
  log_tenant text, log_thread text, log_branch text, expect_seq bigint, expect_hash bytea, expect_epoch bigint,
  log_incarnation text, lease_ms double precision, new_status text, new_created double precision,
  new_updated double precision, new_expires double precision, new_wake double precision,
  entry_keyframe bigint, entry_hash bytea, entry_header bytea, entry_body bytea
) RETURNS text
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
  landed bigint;
  listening text;
  found_log :schema.logs;
BEGIN
  UPDATE :schema.logs AS l SET
    seq = expect_seq + 1, hash = entry_hash,
    lease_until = CASE WHEN lease_ms IS NULL THEN l.lease_until
      ELSE clock_timestamp() + lease_ms * interval '1 millisecond' END,
    status = new_status, created_at = new_created, updated_at = new_updated, expires_at = new_expires,
    wake_at = new_wake, updated_minute = floor(new_updated / 60000), expires_minute = floor(new_expires / 60000)
  WHERE l.tenant = log_tenant AND l.thread = log_thread AND l.branch = log_branch
    AND l.incarnation = log_incarnation AND l.seq = expect_seq AND l.hash = expect_hash AND l.epoch = expect_epoch
  RETURNING l.id,
    CASE WHEN EXISTS (SELECT FROM :schema.listeners w WHERE w.until > clock_timestamp()) THEN '+' ELSE '-' END
  INTO landed, listening;
  IF landed IS NOT NULL THEN
    INSERT INTO :schema.entries (log_id, seq, keyframe, hash, header, body)
    VALUES (landed, expect_seq + 1, entry_keyframe, entry_hash, entry_header, entry_body);
    RETURN listening;
  END IF;
  SELECT l.* INTO found_log FROM :schema.logs l
  WHERE l.tenant = log_tenant AND l.thread = log_thread AND l.branch = log_branch;
  RETURN CASE WHEN EXISTS (SELECT FROM :schema.listeners w WHERE w.until > clock_timestamp()) THEN '+' ELSE '-' END
    || json_build_array(json_build_array(
      1, 'conflict', CASE WHEN found_log.id IS NOT NULL THEN :schema.head_json(found_log, clock_timestamp()) END
    ))::text;
END
$$;
