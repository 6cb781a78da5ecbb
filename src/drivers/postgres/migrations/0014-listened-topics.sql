-- What each listener wants to hear, between spaces. Writers send nothing that nobody listens to.
ALTER TABLE :schema.listeners ADD COLUMN topics text NOT NULL DEFAULT '';
