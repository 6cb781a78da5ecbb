-- A group of statuses, to be indexed instead of the status: with every step of an agent that goes to and fro between 'active'
-- and 'waiting_tool', and no update of an indexed column is heap-only, so each step wrote to all indexes of its log. Every
-- function that writes a status now writes its group, and is otherwise what it was.
CREATE FUNCTION :schema.status_group_in(status text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE status WHEN 'waiting_tool' THEN 'active' ELSE status END
$$;

ALTER TABLE :schema.logs ADD COLUMN status_group text COLLATE "C";

DO $migration$
DECLARE
  definition text;
BEGIN
  FOR definition IN
    SELECT pg_get_functiondef(p.oid) FROM pg_proc p
    WHERE p.pronamespace = to_regnamespace(':schema')
      AND p.proname IN ('append', 'append_one', 'append_several', 'append_step', 'record_step', 'reindex')
  LOOP
    definition := replace(definition, 'status = new_status,',
      'status = new_status, status_group = :schema.status_group_in(new_status),');
    definition := replace(definition, 'status = statuses[n.i],',
      'status = statuses[n.i], status_group = :schema.status_group_in(statuses[n.i]),');
    -- The rows of new logs.
    definition := replace(definition, 'program, priority, limit_key', 'program, status_group, priority, limit_key');
    definition := replace(definition, ':schema.program_in(metadatas[n.i]),',
      ':schema.program_in(metadatas[n.i]), :schema.status_group_in(statuses[n.i]),');
    EXECUTE definition;
  END LOOP;
END
$migration$;
