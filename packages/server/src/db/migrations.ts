// The schema, step by step. A step that has been released is never changed; a new one is added at the end.

export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE sandboxes (
    id TEXT PRIMARY KEY,
    name TEXT,
    description TEXT,
    project TEXT,
    status TEXT NOT NULL,
    reason TEXT,
    runtime TEXT NOT NULL,
    image TEXT,
    engine TEXT NOT NULL,
    isolation TEXT NOT NULL,
    metadata TEXT NOT NULL,
    env TEXT NOT NULL,
    resources TEXT NOT NULL,
    network TEXT NOT NULL,
    user TEXT NOT NULL,
    workdir TEXT NOT NULL,
    root TEXT NOT NULL,
    shell TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    stopped_at INTEGER
  ) STRICT;
  CREATE INDEX sandboxes_by_age ON sandboxes (created_at DESC, id DESC);
  CREATE INDEX sandboxes_by_status ON sandboxes (status);

  CREATE TABLE processes (
    id TEXT PRIMARY KEY,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    command TEXT NOT NULL,
    status TEXT NOT NULL,
    pid INTEGER,
    cwd TEXT NOT NULL,
    user TEXT NOT NULL,
    terminal INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    output_bytes INTEGER NOT NULL,
    result TEXT
  ) STRICT;
  CREATE INDEX processes_by_age ON processes (sandbox_id, started_at DESC, id DESC);

  CREATE TABLE idempotency (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL
  ) STRICT
  `,
]
