-- record_carrying: record_step (0019-record-step.sql) for a step that writes one item of the store, as each call of a model
-- does. The arrays of append_carrying cost several times as much as the writes.
--
-- In:   as for record_step, and the item as for put_item (0008-items.sql)
-- Out:  as for record_step
CREATE FUNCTION :schema.record_carrying(
  log_tenant text, log_thread text, log_branch text, expect_seq bigint, expect_hash bytea, expect_epoch bigint,
  log_incarnation text, lease_ms double precision, new_status text, new_created double precision,
  new_updated double precision, new_expires double precision, new_wake double precision,
  entry_keyframe bigint, entry_hash bytea, entry_header bytea, entry_body bytea,
  item_space text, item_key text, moment double precision, item_version text, item_at double precision,
  item_expires double precision, item_fields text, item_value bytea
) RETURNS text
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
  answer text := :schema.record_step(log_tenant, log_thread, log_branch, expect_seq, expect_hash, expect_epoch,
    log_incarnation, lease_ms, new_status, new_created, new_updated, new_expires, new_wake,
    entry_keyframe, entry_hash, entry_header, entry_body);
BEGIN
  IF length(answer) > 1 THEN
    RETURN answer;
  END IF;
  IF item_version IS NOT NULL THEN
    -- What put_item does to an item that is there, without first taking a lock on it for the case that it is not.
    UPDATE :schema.items AS i SET
      version = item_version,
      created_at = CASE WHEN i.expires_at <= moment THEN item_at ELSE i.created_at END,
      updated_at = item_at, expires_at = item_expires, fields = item_fields::text[], value = item_value
    WHERE i.tenant = log_tenant AND i.space = item_space AND i.key = item_key;
    IF FOUND THEN
      RETURN answer;
    END IF;
  END IF;
  PERFORM :schema.put_item(log_tenant, item_space, item_key, moment, item_version, item_at, item_expires, item_fields,
    item_value);
  RETURN answer;
END
$$;
