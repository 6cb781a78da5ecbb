-- scan_items: items of a space in the order of their keys.
--
-- In:   the tenant and space; the first key and the one to end before; the time that decides what has expired; how
--       many; and, unless null, the names of fields that narrow it, each once, with the fields that are allowed for
--       these names, both in the form that items hold them in
-- Out:  the items; the value in base64
--
-- Always a walk along the primary key: a plan made for a small space would gather and sort the whole of a large one
-- for every page. An item that is left out costs no look at its value.
CREATE FUNCTION :schema.scan_items(
  item_tenant text, item_space text, from_key text, to_key text, moment double precision, page bigint,
  names text[], allowed text[]
) RETURNS TABLE (
  item_key text, item_version text, item_created double precision, item_updated double precision,
  item_expires double precision, item_value text
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
BEGIN
  RETURN QUERY
  SELECT i.key, i.version, i.created_at, i.updated_at, i.expires_at, encode(i.value, 'base64')
  FROM :schema.items i
  WHERE i.tenant = item_tenant AND i.space = item_space AND i.key >= from_key AND i.key < to_key
    AND (i.expires_at IS NULL OR i.expires_at > moment)
    -- An item holds a name at most once, so it fits if as many of its fields are allowed as it has of these names.
    AND (names IS NULL OR (
      SELECT count(*) FILTER (WHERE f.field = ANY (names)) = count(*) FILTER (WHERE f.field = ANY (allowed))
      FROM unnest(i.fields) AS f (field)
    ))
  ORDER BY i.key
  LIMIT page;
END
$$;
