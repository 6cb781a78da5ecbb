-- head_json: a head row as the driver reads it, and its lease as of a moment by the server's clock.
--
-- In:   a row of logs, and the moment
-- Out:  JSON text; hashes in hex, tags and metadata as the JSON text they are stored as, `remaining` in milliseconds
--       and only while a lease is running
CREATE FUNCTION :schema.head_json(l :schema.logs, moment timestamptz) RETURNS text
LANGUAGE sql STABLE
AS $$
  SELECT json_build_object(
    'tenant', l.tenant, 'thread', l.thread, 'branch', l.branch, 'incarnation', l.incarnation,
    'seq', l.seq, 'hash', encode(l.hash, 'hex'), 'epoch', l.epoch,
    'baseSeq', l.base_seq, 'baseHash', encode(l.base_hash, 'hex'),
    'owner', l.lease_owner,
    'remaining', CASE WHEN l.lease_owner IS NOT NULL AND l.lease_until > moment
      THEN extract(epoch FROM l.lease_until - moment)::double precision * 1000 END,
    'status', l.status, 'createdAt', l.created_at, 'updatedAt', l.updated_at,
    'expiresAt', l.expires_at, 'wakeAt', l.wake_at, 'tags', l.tags, 'metadata', l.metadata,
    'originBranch', l.origin_branch, 'originIncarnation', l.origin_incarnation,
    'originSeq', l.origin_seq, 'originHash', encode(l.origin_hash, 'hex')
  )::text
$$;

-- thread_lock: the key of the advisory lock by which creating and erasing logs of one thread exclude each other.
-- Two threads that share a key only wait for each other.
CREATE FUNCTION :schema.thread_lock(tenant text, thread text) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
  SELECT hashtextextended(':schema' || '/' || tenant || chr(1) || thread, 0)
$$;
