// Limits on requests and on what a sandbox may have. Each is enforced by a schema or by the server.

export const LIMITS = {
  /** A JSON body, unless its route has another limit. File content goes through PUT files, which has none. */
  jsonBodyBytes: 256 * 1024,
  /** A JSON body with a command and its environment, which escapes make longer. */
  commandBodyBytes: 2 * 1024 * 1024,
  /** A JSON body with stdin or files, which may be base64. */
  contentBodyBytes: 12 * 1024 * 1024,
  /** Object members and values in one JSON body. Limited because each takes time to parse. */
  jsonMembers: 20_000,
  jsonValues: 100_000,
  /** Nesting of arrays and objects. JSON parsers of other languages stop at about a thousand. */
  jsonDepth: 512,
  nameLength: 128,
  descriptionLength: 4096,
  metadataBytes: 16 * 1024,
  metadataMembers: 1000,
  envEntries: 1000,
  envNameBytes: 256,
  envValueBytes: 64 * 1024,
  envBytes: 256 * 1024,
  argvEntries: 4096,
  argumentBytes: 128 * 1024,
  commandBytes: 512 * 1024,
  /** Files that are part of a call. */
  givenFiles: 1000,
  givenFilesBytes: 8 * 1024 * 1024,
  /** In each list of packages. */
  packages: 100,
  packageNameLength: 256,
  stdinBytes: 8 * 1024 * 1024,
  pathBytes: 4095,
  listEntries: 100_000,
  listPage: 1000,
  listOffset: 1_000_000,
  idempotencyKeyLength: 255,
  execOutputBytes: 64 * 1024 * 1024,
  /** The minimum of `keepOutput`. */
  keepOutputBytes: 1024,
  timeoutMs: 24 * 3_600_000,
  tokenMs: 24 * 3_600_000,
  sessionTokenMs: 365 * 24 * 3_600_000,
  /** Per sandbox, those of magic links too. */
  sessionTokens: 1000,
  /** Unused ones, per sandbox. */
  magicLinks: 1000,
  /** The path that a magic link leads to. */
  redirectLength: 2048,
  /** The longest lifetime of a signed URL. */
  urlMs: 7 * 24 * 3_600_000,
  /** The longest idle or paused timeout. */
  lastingMs: 365 * 24 * 3_600_000,
  codeBytes: 4 * 1024 * 1024,
  codeBodyBytes: 6 * 1024 * 1024,
  /** A prompt or system prompt of an agent session. */
  agentTextBytes: 1024 * 1024,
  /** The body with both; escapes make it longer. */
  agentBodyBytes: 4 * 1024 * 1024,
  agentListEntries: 1000,
  agentServers: 64,
  agentTurns: 10_000,
  globs: 100,
  terminals: 256,
  /** Columns or rows. */
  terminalSide: 1000,
  watchers: 64,
  overlays: 64,
  services: 64,
  /** The records of all services of a sandbox; every checkpoint has a copy. */
  servicesBytes: 1024 * 1024,
  previews: 64,
  awakeReasons: 20,
  forks: 100,
  /** Per sandbox. */
  checkpoints: 1000,
  /** Per checkpoint. */
  patches: 100,
  patchScriptBytes: 256 * 1024,
  /** How much of the end of a patch's output is kept. */
  patchOutputBytes: 64 * 1024,
  /** Kept per sandbox; the oldest are removed first. */
  events: 10_000,
  eventListeners: 64,
  /** Readers of URLs of output, per sandbox. */
  outputReaders: 64,
  /** Files in an imported snapshot. */
  snapshotEntries: 4_000_000,
  /** The largest file whose content a watcher sends. */
  watchContentBytes: 1024 * 1024,
  signalBytes: 64 * 1024,
  /** The body of a signal: escapes and spaces make it longer. */
  signalBodyBytes: 512 * 1024,
  /** The kernel's limit for the path of a unix socket. */
  socketPathBytes: 107,
  batchFiles: 1000,
  storeKeyBytes: 512,
  storeValueBytes: 1024 * 1024,
  storeBatch: 1000,
  /** The body with one value, or a batch: escapes make it longer. */
  storeBodyBytes: 3 * 1024 * 1024,
  storeBatchBodyBytes: 8 * 1024 * 1024,
  storeListKeys: 1000,
  storeKeys: 100_000,
  /** All keys and values of a sandbox together. */
  storeBytes: 256 * 1024 * 1024,
  /** A hundred years. */
  storeTtlSeconds: 100 * 366 * 86_400,
} as const

export const DEFAULTS = {
  runtime: 'base',
  memoryBytes: 1024 * 1024 * 1024,
  cpuMillis: 2000,
  diskBytes: 10 * 1024 * 1024 * 1024,
  pids: 1024,
  idleMs: 300_000,
  /** stdout and stderr together, in the answer to an exec. */
  execOutputBytes: 4 * 1024 * 1024,
  /** Lifetime of a sandbox token and of a signed URL. */
  tokenMs: 3_600_000,
  sessionTokenMs: 7 * 24 * 3_600_000,
  magicLinkMs: 5 * 60_000,
  /** Lifetime of a URL of output or events. */
  streamUrlMs: 24 * 3_600_000,
  port: 7400,
  host: '127.0.0.1',
  /** The socket in the server's data directory, for clients on the same machine. */
  socketName: 'islet.sock',
} as const
