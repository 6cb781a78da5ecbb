-- An append costs the server about a quarter less. A table with generated columns has every value of the row copied for each
-- update, whatever it changes, and their expressions are made ready anew. So what is derived is now written by the
-- functions, which are the only ones that write it: code that knows nothing of this calls them too.
ALTER TABLE :schema.logs
  ALTER COLUMN updated_minute DROP EXPRESSION,
  ALTER COLUMN expires_minute DROP EXPRESSION,
  ALTER COLUMN program DROP EXPRESSION,
  ALTER COLUMN priority DROP EXPRESSION,
  ALTER COLUMN limit_key DROP EXPRESSION;

-- program_in, priority_in, limit_key_in: what stands in the metadata, as 0015-due.sql and 0016-take-due.sql derive it.
CREATE FUNCTION :schema.program_in(metadata text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT split_part(split_part(metadata, '["holdfast.program",', 2), ']', 1)
$$;
CREATE FUNCTION :schema.limit_key_in(metadata text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT split_part(split_part(metadata, '["holdfast.limit",', 2), ']', 1)
$$;
CREATE FUNCTION :schema.priority_in(metadata text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN split_part(split_part(metadata, '["holdfast.priority",', 2), ']', 1) ~ '^-?[0-9]{1,9}$'
    THEN split_part(split_part(metadata, '["holdfast.priority",', 2), ']', 1)::integer ELSE 0 END
$$;

-- append: as in 0003-append.sql.
CREATE OR REPLACE FUNCTION :schema.append(
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
        origin_branch, origin_incarnation, origin_seq, origin_hash,
        updated_minute, expires_minute, program, priority, limit_key
      )
      SELECT tenants[n.i], threads[n.i], branches[n.i], incarnations[n.i], seqs[lasts[n.i]], hashes[lasts[n.i]],
        epochs[n.i], seqs[firsts[n.i]], hashes[firsts[n.i]], owners[n.i],
        CASE WHEN leases[n.i] IN ('claim', 'force')
          THEN clock_timestamp() + lease_ms[n.i] * interval '1 millisecond' ELSE '-infinity' END,
        statuses[n.i], created[n.i], updated[n.i], expires[n.i], wakes[n.i], tag_lists[n.i], metadatas[n.i],
        origin_branches[n.i], origin_incarnations[n.i], origin_seqs[n.i], origin_hashes[n.i],
        floor(updated[n.i] / 60000), floor(expires[n.i] / 60000), :schema.program_in(metadatas[n.i]),
        :schema.priority_in(metadatas[n.i]), :schema.limit_key_in(metadatas[n.i])
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
    origin_seq = origin_seqs[n.i], origin_hash = origin_hashes[n.i],
    updated_minute = floor(updated[n.i] / 60000), expires_minute = floor(expires[n.i] / 60000),
    program = CASE WHEN relabelled[n.i] THEN :schema.program_in(metadatas[n.i]) ELSE l.program END,
    priority = CASE WHEN relabelled[n.i] THEN :schema.priority_in(metadatas[n.i]) ELSE l.priority END,
    limit_key = CASE WHEN relabelled[n.i] THEN :schema.limit_key_in(metadatas[n.i]) ELSE l.limit_key END
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

-- append_one: as in 0004-append-one.sql.
CREATE OR REPLACE FUNCTION :schema.append_one(
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
    origin_incarnation = new_origin_incarnation, origin_seq = new_origin_seq, origin_hash = new_origin_hash,
    updated_minute = floor(new_updated / 60000), expires_minute = floor(new_expires / 60000),
    program = :schema.program_in(new_metadata), priority = :schema.priority_in(new_metadata),
    limit_key = :schema.limit_key_in(new_metadata)
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

-- reindex: as in 0007-reindex.sql.
CREATE OR REPLACE FUNCTION :schema.reindex(
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
    origin_incarnation = new_origin_incarnation, origin_seq = new_origin_seq, origin_hash = new_origin_hash,
    updated_minute = floor(new_updated / 60000), expires_minute = floor(new_expires / 60000),
    program = :schema.program_in(new_metadata), priority = :schema.priority_in(new_metadata),
    limit_key = :schema.limit_key_in(new_metadata)
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

-- append_step: the append of a sequential step, which is what a run consists of: one entry, to a log that exists, by its owner
-- or a guest, with labels and origin as they were. Claims are for append_one.
--
-- In:   as for append_one; lease_ms is null to leave the lease as it is, 0 to release it
-- Out:  as for append
CREATE FUNCTION :schema.append_step(
  log_tenant text, log_thread text, log_branch text, expect_seq bigint, expect_hash bytea, expect_epoch bigint,
  log_incarnation text, lease_ms double precision, new_status text, new_created double precision,
  new_updated double precision, new_expires double precision, new_wake double precision,
  entry_keyframe bigint, entry_hash bytea, entry_header bytea, entry_body bytea,
  OUT failed text, OUT listening boolean
)
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
  landed bigint;
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
  RETURNING l.id, EXISTS (SELECT FROM :schema.listeners w WHERE w.until > clock_timestamp()) INTO landed, listening;
  IF landed IS NOT NULL THEN
    INSERT INTO :schema.entries (log_id, seq, keyframe, hash, header, body)
    VALUES (landed, expect_seq + 1, entry_keyframe, entry_hash, entry_header, entry_body);
    RETURN;
  END IF;
  SELECT l.* INTO found_log FROM :schema.logs l
  WHERE l.tenant = log_tenant AND l.thread = log_thread AND l.branch = log_branch;
  failed := json_build_array(json_build_array(
    1, 'conflict', CASE WHEN found_log.id IS NOT NULL THEN :schema.head_json(found_log, clock_timestamp()) END
  ))::text;
  listening := EXISTS (SELECT FROM :schema.listeners w WHERE w.until > clock_timestamp());
END
$$;
