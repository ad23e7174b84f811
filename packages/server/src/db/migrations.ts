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
  `
  ALTER TABLE sandboxes ADD COLUMN store_access INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE processes ADD COLUMN terminal_id TEXT;
  ALTER TABLE processes ADD COLUMN service TEXT;
  ALTER TABLE processes ADD COLUMN cancel_signals INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE processes ADD COLUMN max_run_after_disconnect_ms INTEGER;
  CREATE INDEX processes_by_terminal ON processes (terminal_id) WHERE terminal_id IS NOT NULL;

  CREATE TABLE terminals (
    id TEXT PRIMARY KEY,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    pty INTEGER NOT NULL,
    process_id TEXT,
    encoding TEXT NOT NULL,
    settings TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX terminals_by_sandbox ON terminals (sandbox_id);

  CREATE TABLE watchers (
    id TEXT PRIMARY KEY,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    include_content INTEGER NOT NULL,
    ignored TEXT NOT NULL,
    encoding TEXT NOT NULL,
    reason TEXT,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX watchers_by_sandbox ON watchers (sandbox_id);

  CREATE TABLE overlays (
    id TEXT PRIMARY KEY,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    spec TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX overlays_by_sandbox ON overlays (sandbox_id);

  CREATE TABLE services (
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    spec TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (sandbox_id, name)
  ) STRICT;

  CREATE TABLE previews (
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    port INTEGER NOT NULL,
    domain TEXT UNIQUE,
    auth TEXT,
    listen_port INTEGER,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (sandbox_id, port)
  ) STRICT;

  CREATE TABLE store (
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    expires_at INTEGER,
    -- The last column of a table with rowids: what is not asked for a value must not read megabytes to get past it.
    value TEXT NOT NULL,
    PRIMARY KEY (sandbox_id, key)
  ) STRICT;
  CREATE INDEX store_by_expiry ON store (expires_at) WHERE expires_at IS NOT NULL;
  CREATE INDEX store_of_sandbox_by_expiry ON store (sandbox_id, expires_at) WHERE expires_at IS NOT NULL
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN timeouts TEXT NOT NULL
    DEFAULT '{"idleMs":300000,"executionMs":0,"pausedMs":0,"onIdle":"hibernate"}';
  ALTER TABLE sandboxes ADD COLUMN suspended_at INTEGER;
  ALTER TABLE sandboxes ADD COLUMN origin TEXT NOT NULL DEFAULT 'null';
  ALTER TABLE sandboxes ADD COLUMN base_snapshot TEXT;
  ALTER TABLE sandboxes ADD COLUMN patches_of TEXT;
  ALTER TABLE sandboxes ADD COLUMN memory TEXT;
  ALTER TABLE processes ADD COLUMN foreground INTEGER NOT NULL DEFAULT 0;

  -- Written far more often than the rest of a sandbox.
  CREATE TABLE activity (
    sandbox_id TEXT PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,
    at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX events_of_sandbox ON events (sandbox_id, seq);

  -- Which layers a sandbox (its id) or a saved state (its id) stands on; one that nothing holds is deleted.
  CREATE TABLE layers_held (
    layer TEXT NOT NULL,
    holder TEXT NOT NULL,
    PRIMARY KEY (layer, holder)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX layers_by_holder ON layers_held (holder);

  CREATE TABLE saved_states (
    id TEXT PRIMARY KEY,
    sandbox_id TEXT NOT NULL,
    status TEXT NOT NULL,
    memory INTEGER NOT NULL,
    frozen_ms REAL NOT NULL,
    size_bytes INTEGER,
    created_at INTEGER NOT NULL,
    -- Long ones last: a list does not read past them.
    state TEXT NOT NULL,
    services TEXT NOT NULL,
    patch_runs TEXT NOT NULL
  ) STRICT;

  -- A value of the store lies by itself, so that a saved state, and what is made of one, names it and does not copy it: that would
  -- stop the server for seconds and fill its disk. It goes with the last that names it.
  CREATE TABLE store_values (
    id INTEGER PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT;
  INSERT INTO store_values (id, value) SELECT rowid, value FROM store;
  ALTER TABLE store RENAME TO store_with_values;
  CREATE TABLE store (
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    expires_at INTEGER,
    -- Of key and value, in UTF-8.
    bytes INTEGER NOT NULL,
    value_id INTEGER NOT NULL,
    PRIMARY KEY (sandbox_id, key)
  ) STRICT;
  INSERT INTO store SELECT sandbox_id, key, expires_at, octet_length(key) + octet_length(value), rowid FROM store_with_values;
  DROP TABLE store_with_values;
  CREATE INDEX store_by_expiry ON store (expires_at) WHERE expires_at IS NOT NULL;
  CREATE INDEX store_of_sandbox_by_expiry ON store (sandbox_id, expires_at) WHERE expires_at IS NOT NULL;
  CREATE INDEX store_by_value ON store (value_id);
  CREATE TABLE saved_store (
    saved_id TEXT NOT NULL REFERENCES saved_states (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    expires_at INTEGER,
    bytes INTEGER NOT NULL,
    value_id INTEGER NOT NULL,
    PRIMARY KEY (saved_id, key)
  ) STRICT;
  CREATE INDEX saved_store_by_value ON saved_store (value_id);
  CREATE TRIGGER store_deleted AFTER DELETE ON store BEGIN
    DELETE FROM store_values WHERE id = OLD.value_id AND NOT EXISTS (SELECT 1 FROM store WHERE value_id = OLD.value_id)
      AND NOT EXISTS (SELECT 1 FROM saved_store WHERE value_id = OLD.value_id);
  END;
  CREATE TRIGGER store_changed AFTER UPDATE OF value_id ON store BEGIN
    DELETE FROM store_values WHERE id = OLD.value_id AND NOT EXISTS (SELECT 1 FROM store WHERE value_id = OLD.value_id)
      AND NOT EXISTS (SELECT 1 FROM saved_store WHERE value_id = OLD.value_id);
  END;
  CREATE TRIGGER saved_store_deleted AFTER DELETE ON saved_store BEGIN
    DELETE FROM store_values WHERE id = OLD.value_id AND NOT EXISTS (SELECT 1 FROM store WHERE value_id = OLD.value_id)
      AND NOT EXISTS (SELECT 1 FROM saved_store WHERE value_id = OLD.value_id);
  END;

  -- A checkpoint outlives its sandbox.
  CREATE TABLE checkpoints (
    id TEXT PRIMARY KEY,
    sandbox_id TEXT NOT NULL,
    name TEXT NOT NULL,
    saved_id TEXT NOT NULL REFERENCES saved_states (id),
    created_at INTEGER NOT NULL,
    UNIQUE (sandbox_id, name)
  ) STRICT;
  CREATE INDEX checkpoints_by_saved ON checkpoints (saved_id);

  -- A deleted one that others descend from stays as a name: saved_id is null then.
  CREATE TABLE snapshots (
    id TEXT PRIMARY KEY,
    name TEXT,
    tag TEXT UNIQUE,
    description TEXT,
    saved_id TEXT REFERENCES saved_states (id),
    sandbox_id TEXT,
    checkpoint_id TEXT,
    parent_id TEXT,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER
  ) STRICT;
  CREATE INDEX snapshots_by_age ON snapshots (created_at DESC, id DESC);
  CREATE INDEX snapshots_by_parent ON snapshots (parent_id);
  CREATE INDEX snapshots_by_saved ON snapshots (saved_id);

  CREATE TABLE patches (
    id TEXT PRIMARY KEY,
    checkpoint_id TEXT NOT NULL REFERENCES checkpoints (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    script TEXT NOT NULL,
    description TEXT,
    created_at INTEGER NOT NULL,
    UNIQUE (checkpoint_id, sequence)
  ) STRICT;
  CREATE TABLE patch_runs (
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    patch_id TEXT NOT NULL,
    status TEXT NOT NULL,
    process_id TEXT,
    exit_code INTEGER,
    output TEXT NOT NULL,
    reason TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (sandbox_id, patch_id)
  ) STRICT
  `,
  `
  -- Ten thousand stopped sandboxes are remembered: what asks for those that are there, or for the oldest, does not read past them.
  DROP INDEX sandboxes_by_status;
  CREATE INDEX sandboxes_present ON sandboxes (created_at DESC, id DESC, status) WHERE status != 'stopped';
  CREATE INDEX sandboxes_stopped ON sandboxes (stopped_at DESC, id DESC) WHERE status = 'stopped';
  CREATE INDEX idempotency_by_age ON idempotency (created_at);
  CREATE INDEX idempotency_by_sandbox ON idempotency (sandbox_id)
  `,
  `
  -- All checkpoints are listed, newest first.
  CREATE INDEX checkpoints_by_age ON checkpoints (created_at DESC, id DESC)
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN keep_awake INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE processes ADD COLUMN keep_awake INTEGER NOT NULL DEFAULT 0;
  UPDATE processes SET keep_awake = 1 WHERE status = 'running' AND service IS NULL AND terminal = 0
  `,
  `
  -- A name belongs to one sandbox at a time: of those that share one, the newest keeps it. What a crash left half made is removed soon.
  UPDATE sandboxes SET name = NULL WHERE status = 'creating';
  UPDATE sandboxes SET name = NULL WHERE name IS NOT NULL AND status != 'stopped' AND EXISTS (
    SELECT 1 FROM sandboxes AS newer WHERE newer.name = sandboxes.name AND newer.status != 'stopped'
      AND (newer.created_at, newer.id) > (sandboxes.created_at, sandboxes.id)
  );
  CREATE UNIQUE INDEX sandboxes_by_name ON sandboxes (name) WHERE name IS NOT NULL AND status != 'stopped'
  `,
  `
  -- 1: the network is still to be switched to what the record says.
  ALTER TABLE sandboxes ADD COLUMN network_due INTEGER NOT NULL DEFAULT 0
  `,
  `
  -- How much of the output of a process is kept. It was 1 MiB of each.
  ALTER TABLE processes ADD COLUMN keep_output_bytes INTEGER NOT NULL DEFAULT 1048576
  `,
  `
  ALTER TABLE sandboxes RENAME COLUMN shell TO cell
  `,
  `
  CREATE TABLE session_tokens (
    id TEXT PRIMARY KEY,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    -- SHA-256 of the value, as hex. So is the hash of a link.
    hash TEXT NOT NULL UNIQUE,
    description TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    last_used_at INTEGER
  ) STRICT;
  CREATE INDEX session_tokens_by_age ON session_tokens (sandbox_id, created_at DESC, id DESC);
  CREATE INDEX session_tokens_by_expiry ON session_tokens (expires_at);

  CREATE TABLE magic_links (
    hash TEXT PRIMARY KEY,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    redirect_url TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX magic_links_by_sandbox ON magic_links (sandbox_id);
  CREATE INDEX magic_links_by_expiry ON magic_links (expires_at)
  `,
  `
  -- How each process ended, in one word, and why a lost one was lost.
  ALTER TABLE processes ADD COLUMN outcome TEXT;
  ALTER TABLE processes ADD COLUMN reason TEXT;
  UPDATE processes SET
    outcome = CASE
      WHEN result ->> '$.exitCode' = 0 THEN 'completed'
      WHEN result ->> '$.timedOut' THEN 'timeout'
      WHEN result ->> '$.exitCode' BETWEEN 129 AND 159
        AND cancel_signals & (1 << ((result ->> '$.exitCode') - 128)) != 0 THEN 'cancelled'
      ELSE 'failed' END,
    reason = iif(status = 'lost', 'The sandbox ended before the process did.', NULL)
  WHERE status != 'running';
  -- The port that has a preview with its sandbox.
  UPDATE sandboxes SET network = json_set(network, '$.port', NULL);
  UPDATE saved_states SET state = json_set(state, '$.network.port', NULL)
  `,
  `
  -- The processes that are agent sessions.
  CREATE TABLE agents (process_id TEXT PRIMARY KEY REFERENCES processes (id) ON DELETE CASCADE) STRICT, WITHOUT ROWID
  `,
  `
  -- 1: a new server removes it, because its caller is gone.
  ALTER TABLE sandboxes ADD COLUMN one_shot INTEGER NOT NULL DEFAULT 0
  `,
]
