// The bounds of what callers may send. Every one is enforced by a schema or by the server.

export const LIMITS = {
  /** A JSON body, where its route says nothing else; file content goes through PUT files, which has no limit. */
  jsonBodyBytes: 256 * 1024,
  /** A body that holds a command and its environment, with their escapes. */
  commandBodyBytes: 2 * 1024 * 1024,
  /** A body that holds stdin or files, also as base64. */
  contentBodyBytes: 12 * 1024 * 1024,
  /** What a JSON body is made of: members of objects, and values in all. Bounded because each takes time to read. */
  jsonMembers: 20_000,
  jsonValues: 100_000,
  /** Arrays and objects within each other; readers of JSON in other languages give up at about a thousand. */
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
  createFiles: 1000,
  createFilesBytes: 8 * 1024 * 1024,
  stdinBytes: 8 * 1024 * 1024,
  pathBytes: 4095,
  listEntries: 100_000,
  listPage: 1000,
  idempotencyKeyLength: 255,
  execOutputBytes: 64 * 1024 * 1024,
  /** The least that is kept of a process's output. */
  keepOutputBytes: 1024,
  timeoutMs: 24 * 3_600_000,
  tokenMs: 24 * 3_600_000,
  /** How long a sandbox may be told to stay idle or paused. */
  lastingMs: 365 * 24 * 3_600_000,
  codeBytes: 4 * 1024 * 1024,
  codeBodyBytes: 6 * 1024 * 1024,
  globs: 100,
  terminals: 256,
  /** Columns or rows. */
  terminalSide: 1000,
  watchers: 64,
  overlays: 64,
  services: 64,
  /** All that describes the services of a sandbox: every checkpoint has it too. */
  servicesBytes: 1024 * 1024,
  previews: 64,
  awakeReasons: 20,
  forks: 100,
  /** Of each sandbox. */
  checkpoints: 1000,
  /** Of each checkpoint. */
  patches: 100,
  patchScriptBytes: 256 * 1024,
  /** The end of what a patch printed. */
  patchOutputBytes: 64 * 1024,
  /** Kept of each sandbox; the oldest go first. */
  events: 10_000,
  eventListeners: 64,
  /** Files of an imported snapshot. */
  snapshotEntries: 4_000_000,
  /** What a watcher gives of a file. */
  watchContentBytes: 1024 * 1024,
  signalBytes: 64 * 1024,
  /** The body that holds it: escapes and spaces make it longer. */
  signalBodyBytes: 512 * 1024,
  /** What the kernel takes as the path of a unix socket. */
  socketPathBytes: 107,
  batchFiles: 1000,
  storeKeyBytes: 512,
  storeValueBytes: 1024 * 1024,
  storeBatch: 1000,
  /** The body that holds one value, or a batch: escapes make them longer. */
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
  /** What an exec answer holds of stdout and stderr together. */
  execOutputBytes: 4 * 1024 * 1024,
  /** A sandbox token, and the URL of a signed file. */
  tokenMs: 3_600_000,
  port: 7400,
  host: '127.0.0.1',
  /** In the data directory of a server: the socket by which clients of the same machine reach it. */
  socketName: 'islet.sock',
} as const
