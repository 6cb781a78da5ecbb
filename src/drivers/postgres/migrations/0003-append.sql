-- append: compare-and-append of any number of logs, each all-or-nothing by itself, in one statement and so in one
-- round trip and one commit.
--
-- In, one element per append, sorted by tenant, thread and branch, byte by byte; no log twice:
--   tenants, threads, branches       the log
--   expect_seqs                      the seq it must end with, or null to create it
--   expect_hashes, expect_epochs     what else it must end with (null when creating)
--   incarnations, epochs             after this append; a log that exists must have the incarnation already
--   require_branches, -_incarnations a branch of the thread that must exist, or null
--   leases                           'keep', 'claim', 'force' (claim whoever holds it), 'extend' or 'release'
--   owners, lease_ms                 for claims and extensions
--   statuses, created, updated, expires, wakes, tag_lists, metadatas, origin_branches, origin_incarnations,
--   origin_seqs, origin_hashes       the index row
--   firsts, lasts                    the positions of its entries, from 1
--   relabelled                       whether its label rows are replaced
-- In, one element per entry:
--   seqs, keyframes, hashes, headers, bodies
-- In, one element per label of the appends that are relabelled:
--   label_appends, labels            the position of its append, and the label
--
-- Out:
--   failed                           null when all appends landed; else a JSON array of one element for each that
--                                    did not: its position, 'conflict' or 'held', and the head (see head_json)
--   listening                        whether somebody wants to be notified of appends
--
-- Locks, always in this order, so that two batches that meet never deadlock: the threads of logs that are created,
-- shared; the rows that are created, by key; the rows that are appended to, by key.
CREATE FUNCTION :schema.append(
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
  OUT failed text, OUT listening boolean
)
LANGUAGE plpgsql
-- A plan made while the tables were small must not go on scanning them when they are large.
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
DECLARE
  -- Leases are judged by one moment. A lease that ends while we wait for a row still counts as running, and whoever
  -- wants it comes again.
  moment timestamptz := clock_timestamp();
  -- For each append the log it lands in, or null.
  ids bigint[];
  created_ids bigint[];
BEGIN
  IF array_position(expect_seqs, NULL) IS NOT NULL OR cardinality(array_remove(require_branches, NULL)) > 0 THEN
    -- No log of these threads is erased meanwhile: a tombstone must not outlive a log created beside it, and a fork
    -- must not lose the branch it requires.
    PERFORM pg_advisory_xact_lock_shared(:schema.thread_lock(tenants[n.i], threads[n.i]))
    FROM generate_series(1, cardinality(tenants)) AS n (i)
    WHERE expect_seqs[n.i] IS NULL OR require_branches[n.i] IS NOT NULL;

    -- An append whose requirement is not met loses its incarnation, and then conflicts like any other.
    SELECT array_agg(CASE WHEN require_branches[n.i] IS NULL OR EXISTS (
        SELECT FROM :schema.logs l
        WHERE l.tenant = tenants[n.i] AND l.thread = threads[n.i] AND l.branch = require_branches[n.i]
          AND l.incarnation = require_incarnations[n.i]
      ) THEN incarnations[n.i] END ORDER BY n.i)
    INTO incarnations FROM generate_series(1, cardinality(tenants)) AS n (i);

    WITH landed AS (
      INSERT INTO :schema.logs AS l (
        tenant, thread, branch, incarnation, seq, hash, epoch, base_seq, base_hash, lease_owner, lease_until,
        status, created_at, updated_at, expires_at, wake_at, tags, metadata,
        origin_branch, origin_incarnation, origin_seq, origin_hash
      )
      SELECT tenants[n.i], threads[n.i], branches[n.i], incarnations[n.i], seqs[lasts[n.i]], hashes[lasts[n.i]],
        epochs[n.i], seqs[firsts[n.i]], hashes[firsts[n.i]], owners[n.i],
        CASE WHEN leases[n.i] IN ('claim', 'force')
          THEN clock_timestamp() + lease_ms[n.i] * interval '1 millisecond' ELSE '-infinity' END,
        statuses[n.i], created[n.i], updated[n.i], expires[n.i], wakes[n.i], tag_lists[n.i], metadatas[n.i],
        origin_branches[n.i], origin_incarnations[n.i], origin_seqs[n.i], origin_hashes[n.i]
      FROM generate_series(1, cardinality(tenants)) AS n (i)
      WHERE expect_seqs[n.i] IS NULL AND incarnations[n.i] IS NOT NULL
      ORDER BY n.i
      ON CONFLICT DO NOTHING
      RETURNING l.id, l.tenant, l.thread, l.branch
    ), unburied AS (
      DELETE FROM :schema.tombstones t USING landed WHERE t.tenant = landed.tenant AND t.thread = landed.thread
    )
    SELECT array_agg(landed.id ORDER BY n.i)
    INTO created_ids
    FROM generate_series(1, cardinality(tenants)) AS n (i)
    LEFT JOIN landed ON landed.tenant = tenants[n.i] AND landed.thread = threads[n.i] AND landed.branch = branches[n.i];
  END IF;

  -- The comparison. A row that another transaction is writing is waited for and then compared as it is by then.
  SELECT array_agg(compared.id ORDER BY compared.i)
  INTO ids
  FROM (
    SELECT n.i, (
      SELECT l.id FROM :schema.logs l
      WHERE l.tenant = tenants[n.i] AND l.thread = threads[n.i] AND l.branch = branches[n.i]
        AND l.incarnation = incarnations[n.i] AND l.seq = expect_seqs[n.i]
        AND l.hash = expect_hashes[n.i] AND l.epoch = expect_epochs[n.i]
        AND (leases[n.i] <> 'claim' OR l.lease_owner IS NULL OR l.lease_until <= moment)
      FOR NO KEY UPDATE
    ) AS id
    FROM generate_series(1, cardinality(tenants)) AS n (i)
  ) AS compared;

  -- The write, of rows that are ours now.
  UPDATE :schema.logs AS l SET
    seq = seqs[lasts[n.i]], hash = hashes[lasts[n.i]], epoch = epochs[n.i],
    lease_owner = CASE WHEN leases[n.i] IN ('claim', 'force') THEN owners[n.i] ELSE l.lease_owner END,
    lease_until = CASE leases[n.i]
      WHEN 'keep' THEN l.lease_until
      WHEN 'release' THEN clock_timestamp()
      ELSE clock_timestamp() + lease_ms[n.i] * interval '1 millisecond' END,
    status = statuses[n.i], created_at = created[n.i], updated_at = updated[n.i],
    expires_at = expires[n.i], wake_at = wakes[n.i], tags = tag_lists[n.i], metadata = metadatas[n.i],
    origin_branch = origin_branches[n.i], origin_incarnation = origin_incarnations[n.i],
    origin_seq = origin_seqs[n.i], origin_hash = origin_hashes[n.i]
  FROM unnest(ids) WITH ORDINALITY AS n (id, i)
  -- Said twice: whichever way the two are joined, no other rows are looked at.
  WHERE l.id = n.id AND l.id = ANY (ids);

  IF created_ids IS NOT NULL THEN
    SELECT array_agg(coalesce(n.created_id, n.id) ORDER BY n.i)
    INTO ids FROM unnest(ids, created_ids) WITH ORDINALITY AS n (id, created_id, i);
  END IF;
  INSERT INTO :schema.entries (log_id, seq, keyframe, hash, header, body)
  SELECT n.id, seqs[e.i], keyframes[e.i], hashes[e.i], headers[e.i], bodies[e.i]
  FROM unnest(ids, firsts, lasts) AS n (id, first, last), generate_series(n.first, n.last) AS e (i)
  WHERE n.id IS NOT NULL;
  IF true = ANY (relabelled) THEN
    DELETE FROM :schema.labels WHERE log_id IN (
      SELECT n.id FROM unnest(ids, relabelled) AS n (id, relabelled) WHERE n.relabelled
    );
    INSERT INTO :schema.labels (log_id, label)
    SELECT ids[n.i], n.label FROM unnest(label_appends, labels) AS n (i, label) WHERE ids[n.i] IS NOT NULL;
  END IF;
  listening := EXISTS (SELECT FROM :schema.listeners w WHERE w.until > moment);
  IF array_position(ids, NULL) IS NULL THEN
    RETURN;
  END IF;

  -- A log that is as expected and yet was not appended to is held: no log ever comes back to where it was.
  SELECT json_agg(json_build_array(
    n.i,
    CASE WHEN leases[n.i] = 'claim' AND (f.log).incarnation = incarnations[n.i] AND (f.log).seq = expect_seqs[n.i]
      AND (f.log).hash = expect_hashes[n.i] AND (f.log).epoch = expect_epochs[n.i] THEN 'held' ELSE 'conflict' END,
    CASE WHEN (f.log).id IS NOT NULL THEN :schema.head_json(f.log, moment) END
  ))::text
  INTO failed
  FROM generate_series(1, cardinality(ids)) AS n (i)
  LEFT JOIN LATERAL (
    SELECT l AS log FROM :schema.logs l
    WHERE l.tenant = tenants[n.i] AND l.thread = threads[n.i] AND l.branch = branches[n.i]
    OFFSET 0
  ) AS f ON true
  WHERE ids[n.i] IS NULL;
END
$$;
