-- append_carrying: append, and in the same transaction the items that its entries carry. An append that did not land
-- writes no item.
--
-- In, first:  as for append
-- In, one element per carried write, sorted by tenant, space and key, byte by byte:
--   item_appends               the position of its append
--   spaces, keys               the item, of the tenant of its log
--   moments                    the time that decides whether what is there has expired
--   versions, ats, item_expires, field_lists, new_values
--                              the new item, or a null version to remove it; see put_item
-- Out:        as for append
--
-- Locks: those of append, then the items in the order given.
CREATE FUNCTION :schema.append_carrying(
  tenants text[], threads text[], branches text[],
  expect_seqs bigint[], expect_hashes bytea[], expect_epochs bigint[],
  incarnations text[], epochs bigint[], require_branches text[], require_incarnations text[],
  leases text[], owners text[], lease_ms double precision[],
  statuses text[], created double precision[], updated double precision[],
  expires double precision[], wakes double precision[], tag_lists text[], metadatas text[],
  origin_branches text[], origin_incarnations text[], origin_seqs bigint[], origin_hashes bytea[],
  firsts integer[], lasts integer[], relabelled boolean[],
  seqs bigint[], keyframes bigint[], hashes bytea[], headers bytea[], bodies bytea[],
  label_appends integer[], labels bytea[],
  item_appends integer[], spaces text[], keys text[], moments double precision[],
  versions text[], ats double precision[], item_expires double precision[], field_lists text[], new_values bytea[],
  OUT failed text, OUT listening boolean
)
LANGUAGE plpgsql
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
DECLARE
  -- The positions of the appends that did not land.
  missed integer[];
BEGIN
  SELECT a.failed, a.listening INTO failed, listening FROM :schema.append(
    tenants, threads, branches, expect_seqs, expect_hashes, expect_epochs,
    incarnations, epochs, require_branches, require_incarnations, leases, owners, lease_ms,
    statuses, created, updated, expires, wakes, tag_lists, metadatas,
    origin_branches, origin_incarnations, origin_seqs, origin_hashes, firsts, lasts, relabelled,
    seqs, keyframes, hashes, headers, bodies, label_appends, labels
  ) AS a;
  missed := ARRAY(SELECT (f.failure ->> 0)::integer FROM json_array_elements(failed::json) AS f (failure));
  FOR n IN 1 .. cardinality(item_appends) LOOP
    CONTINUE WHEN item_appends[n] = ANY (missed);
    PERFORM :schema.put_item(tenants[item_appends[n]], spaces[n], keys[n], moments[n], versions[n], ats[n],
      item_expires[n], field_lists[n], new_values[n]);
  END LOOP;
END
$$;
