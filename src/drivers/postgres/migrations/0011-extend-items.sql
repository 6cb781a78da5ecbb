-- extend_items: reads items by key, and moves the expiry of those that have an earlier one.
--
-- In:   the tenant and space; the keys, sorted byte by byte, each once; the time that decides what has expired; and
--       where to move expiries
-- Out:  the items that exist, as they are afterwards; the value in base64
--
-- Rows are locked one after another in the order of their keys, as by all who write items.
CREATE FUNCTION :schema.extend_items(
  item_tenant text, item_space text, keys text[], moment double precision, extend_to double precision
) RETURNS TABLE (
  item_key text, item_version text, item_created double precision, item_updated double precision,
  item_expires double precision, item_value text
)
LANGUAGE plpgsql
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
BEGIN
  FOREACH item_key IN ARRAY keys LOOP
    LOOP
      UPDATE :schema.items AS i SET expires_at = extend_to
      WHERE i.tenant = item_tenant AND i.space = item_space AND i.key = item_key
        AND i.expires_at > moment AND i.expires_at < extend_to;
      SELECT i.version, i.created_at, i.updated_at, i.expires_at, encode(i.value, 'base64')
      INTO item_version, item_created, item_updated, item_expires, item_value
      FROM :schema.items i
      WHERE i.tenant = item_tenant AND i.space = item_space AND i.key = item_key
        AND (i.expires_at IS NULL OR i.expires_at > moment);
      EXIT WHEN NOT FOUND;
      IF item_expires IS NULL OR item_expires >= extend_to THEN
        RETURN NEXT;
        EXIT;
      END IF;
      -- Written by another between the two statements, with an expiry that has to be moved again.
    END LOOP;
  END LOOP;
END
$$;
