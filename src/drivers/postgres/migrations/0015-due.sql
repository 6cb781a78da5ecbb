-- What is due is found by program. `program` is the JSON text of the program's name as it stands in the metadata, up to the
-- first bracket: derived, so that code which knows nothing of it keeps it right.
ALTER TABLE :schema.logs
  ADD COLUMN program text COLLATE "C" GENERATED ALWAYS AS (
    split_part(split_part(metadata, '["holdfast.program",', 2), ']', 1)
  ) STORED,
  -- For whom it is kept that asked for what is due: as long as the log ends there, and not longer than until then.
  ADD COLUMN taken_seq bigint,
  ADD COLUMN taken_until timestamptz;

-- By the minute, so that an append does not have to move its log here (see updated_minute). On expressions, so that no
-- other index fits a search for what is due: a plan by the times alone would walk through what is due of other programs.
CREATE INDEX logs_due ON :schema.logs (program, (wake_at + 0), (updated_minute + 0)) WHERE wake_at IS NOT NULL;
