-- write_items: compares and writes any number of items of a tenant, each all-or-nothing by itself, in one statement
-- and so in one round trip and one commit.
--
-- In:
--   item_tenant, moment        the tenant, and the time that decides what has expired
-- In, one element per write, sorted by space and key, byte by byte; no item twice:
--   spaces, keys               the item
--   compared                   whether it must be as expected
--   expected                   the version that must be there, or null for none
--   versions                   the new version, or null to remove the item
--   ats, expires, field_lists, new_values
--                              the rest of the new item; see put_item
--
-- Out:  one row for each write that was not as expected: its position, and the version that is there or null
--
-- Each row is locked, compared and written before the next is looked at. All who write items go by the order of their
-- keys, so two that meet never deadlock. Locking all first and then writing would not do: a row that appeared in
-- between would be locked out of order.
CREATE FUNCTION :schema.write_items(
  item_tenant text, moment double precision, spaces text[], keys text[], compared boolean[], expected text[],
  versions text[], ats double precision[], expires double precision[], field_lists text[], new_values bytea[]
) RETURNS TABLE (place integer, present text)
LANGUAGE plpgsql
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
BEGIN
  FOR n IN 1 .. cardinality(keys) LOOP
    place := n;
    present := NULL;
    IF compared[n] AND expected[n] IS NULL AND versions[n] IS NOT NULL THEN
      -- Of two that insert the same key one waits for the other here, and then finds its row.
      INSERT INTO :schema.items AS i (tenant, space, key, version, created_at, updated_at, expires_at, fields, value)
      VALUES (item_tenant, spaces[n], keys[n], versions[n], ats[n], ats[n], expires[n], field_lists[n]::text[],
        new_values[n])
      ON CONFLICT (tenant, space, key) DO UPDATE SET
        version = excluded.version, created_at = excluded.created_at, updated_at = excluded.updated_at,
        expires_at = excluded.expires_at, fields = excluded.fields, value = excluded.value
      WHERE i.expires_at <= moment;
      IF NOT FOUND THEN
        -- The row that hindered is locked, though not written: this is the one.
        SELECT i.version INTO present FROM :schema.items i
        WHERE i.tenant = item_tenant AND i.space = spaces[n] AND i.key = keys[n];
        RETURN NEXT;
      END IF;
      CONTINUE;
    END IF;
    IF compared[n] THEN
      LOOP
        SELECT CASE WHEN i.expires_at <= moment THEN NULL ELSE i.version END INTO present FROM :schema.items i
        WHERE i.tenant = item_tenant AND i.space = spaces[n] AND i.key = keys[n]
        FOR NO KEY UPDATE;
        -- Who waited for a transaction that removed the row and made it again has found neither: it looks again.
        EXIT WHEN FOUND OR NOT EXISTS (
          SELECT FROM :schema.items i WHERE i.tenant = item_tenant AND i.space = spaces[n] AND i.key = keys[n]
        );
      END LOOP;
      IF present IS DISTINCT FROM expected[n] THEN
        RETURN NEXT;
        CONTINUE;
      END IF;
      -- Nothing was to be there, nothing is, and nothing is to be left: only an expired row may lie there, for the sweep.
      CONTINUE WHEN present IS NULL;
    END IF;
    PERFORM :schema.put_item(item_tenant, spaces[n], keys[n], moment, versions[n], ats[n], expires[n], field_lists[n],
      new_values[n]);
  END LOOP;
END
$$;
