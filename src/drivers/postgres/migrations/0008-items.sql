-- The items of the store, one row each. A key of the greatest length (tenant 512, space and key 1,024 bytes each) just
-- fits an entry of the index, which may have 2,704 bytes.
CREATE TABLE :schema.items (
  tenant text COLLATE "C" NOT NULL,
  space text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  version text COLLATE "C" NOT NULL,
  -- Milliseconds since 1970, as the caller gave them.
  created_at double precision NOT NULL,
  updated_at double precision NOT NULL,
  expires_at double precision,
  -- As in `logs`: an expiry that is moved on by every read would otherwise be a write to both indexes each time.
  expires_minute double precision GENERATED ALWAYS AS (floor(expires_at / 60000)) STORED,
  -- Two texts for each field: its name as JSON, and name and token as JSON with a colon between. Not indexed: a scan
  -- also wants the items that have no field of that name, which no index of those that have one can find.
  fields text[] COLLATE "C" NOT NULL,
  value bytea NOT NULL,
  PRIMARY KEY (tenant, space, key)
);
ALTER TABLE :schema.items ALTER COLUMN value SET STORAGE EXTERNAL;
CREATE INDEX items_expires ON :schema.items (expires_minute) WHERE expires_minute IS NOT NULL;

-- put_item: writes or removes one item, whatever is there. Only called by the functions below.
--
-- In:   the place; `moment`, which decides whether what is there has expired; and the new item, or a null version to
--       remove. `new_fields` is the text form of an array.
CREATE FUNCTION :schema.put_item(
  item_tenant text, item_space text, item_key text, moment double precision,
  new_version text, new_at double precision, new_expires double precision, new_fields text, new_value bytea
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
  IF new_version IS NULL THEN
    DELETE FROM :schema.items i WHERE i.tenant = item_tenant AND i.space = item_space AND i.key = item_key;
  ELSE
    INSERT INTO :schema.items AS i (tenant, space, key, version, created_at, updated_at, expires_at, fields, value)
    VALUES (item_tenant, item_space, item_key, new_version, new_at, new_at, new_expires, new_fields::text[], new_value)
    ON CONFLICT (tenant, space, key) DO UPDATE SET
      version = excluded.version,
      created_at = CASE WHEN i.expires_at <= moment THEN excluded.created_at ELSE i.created_at END,
      updated_at = excluded.updated_at,
      expires_at = excluded.expires_at,
      fields = excluded.fields,
      value = excluded.value;
  END IF;
END
$$;
