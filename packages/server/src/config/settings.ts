// Every setting of the server, once: environment variable, key in the config file, parser, default and a sentence.
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { DEFAULTS } from '@islet/contract'
import { LOG_FORMATS, LOG_LEVELS } from '../log.ts'
import {
  address,
  autoOr,
  cidr,
  duration,
  group,
  host,
  integer,
  list,
  oneOf,
  origin,
  type Parse,
  path,
  size,
  text,
  url,
} from './parse.ts'
import { type PortRange, type PreviewOrigin, portRange, previewOrigin } from './preview.ts'

export interface Setting<T> {
  env: string
  parse: Parse<T>
  /** The default as it would be written in the environment; undefined: none. */
  default?: string | ((known: Known) => string)
  /** How docs show a default that depends on the machine. */
  defaultText?: string
  help: string
  /** Only the environment may set it. */
  envOnly?: true
  /** An empty variable is a value, not an absent one. */
  mayBeEmpty?: true
}

/** The facts on which a default may depend. */
export interface Known {
  dataDir: string
  env: Env
  isRoot: boolean
  isTerminal: boolean
}

export type Env = Record<string, string | undefined>

/** Made by `islet service install`. */
export const DEFAULT_GROUP = 'islet'

const setting = <T>(value: Setting<T>): Setting<T> => value

/** The key is the name in the config file and in `Config`. */
export const SETTINGS = {
  dataDir: setting({
    env: 'ISLET_DATA_DIR',
    parse: path,
    default: ({ env, isRoot }) => defaultDataDir(env, isRoot),
    defaultText: '`/var/lib/islet` as root, else `$XDG_DATA_HOME/islet` or `~/.local/share/islet`',
    help: 'Directory of all data.',
    envOnly: true,
  }),
  host: setting({
    env: 'ISLET_HOST',
    parse: host,
    default: DEFAULTS.host,
    help: 'The address to listen on. Any address but loopback exposes the server to the network: use TLS (`ISLET_TLS_CERT`), or a TLS proxy in front.',
  }),
  port: setting({
    env: 'ISLET_PORT',
    parse: integer(0, 65_535),
    default: String(DEFAULTS.port),
    help: 'The port to listen on; 0 takes any free one.',
  }),
  tlsCert: setting<string | undefined>({
    env: 'ISLET_TLS_CERT',
    parse: path,
    help: 'A file with the TLS certificate and its chain, as PEM. With it the API and the previews speak only https, TLS 1.2 or newer. A renewed file is used within a few seconds.',
  }),
  tlsKey: setting<string | undefined>({
    env: 'ISLET_TLS_KEY',
    parse: path,
    help: 'A file with the key of that certificate, as PEM.',
  }),
  maxConnections: setting({
    env: 'ISLET_MAX_CONNECTIONS',
    parse: autoOr(integer(16, 1_000_000)),
    default: 'auto',
    help: 'How many connections to the API and the previews may be open at once. At the limit an idle connection is closed for a new one, first those that never sent a key. `auto`: half of the open-files limit of this process, at most 8192.',
  }),
  publicUrl: setting<string | undefined>({
    env: 'ISLET_PUBLIC_URL',
    parse: url,
    help: 'The URL of this server behind a proxy. Signed URLs and magic links begin with it, the page at `/play/` works there, and its Host is also accepted on loopback.',
  }),
  corsOrigins: setting({
    env: 'ISLET_CORS_ORIGINS',
    parse: list(origin),
    default: '',
    help: 'Origins of web pages that may call this server from a browser, like `https://app.example.com,http://localhost:5173`.',
  }),
  apiKey: setting<string | undefined>({
    env: 'ISLET_API_KEY',
    parse: text,
    help: 'The admin key, instead of the one in `<data>/key`. Clients read the same variable.',
    envOnly: true,
  }),
  group: setting({
    env: 'ISLET_GROUP',
    parse: group,
    default: DEFAULT_GROUP,
    help: 'Members of this group of the machine may read `<data>/key` of a server that runs as root, if the group exists. Empty: only root.',
    mayBeEmpty: true,
  }),
  engine: setting({
    env: 'ISLET_ENGINE',
    parse: oneOf(['oci', 'process'] as const),
    default: 'oci',
    help: 'The engine that runs sandboxes. `process` has no wall: for development only.',
  }),
  isolation: setting({
    env: 'ISLET_ISOLATION',
    parse: oneOf(['namespace', 'gvisor'] as const),
    default: 'namespace',
    help: 'The isolation of engine `oci`. `gvisor` gives each sandbox its own kernel, and memory that survives hibernation.',
  }),
  runtimeBinary: setting({
    env: 'ISLET_RUNTIME_BINARY',
    parse: oneOf(['auto', 'runc', 'crun'] as const),
    default: 'auto',
    help: 'The OCI runtime. `auto` takes `crun`, which starts faster, if it has all needed features, else `runc`.',
  }),
  storage: setting({
    env: 'ISLET_STORAGE',
    parse: oneOf(['auto', 'btrfs', 'reflink', 'copy'] as const),
    default: 'auto',
    help: 'How layers are cloned: `btrfs`, `reflink` or `copy`. `auto` takes the best that this machine supports.',
  }),
  poolSizeBytes: setting({
    env: 'ISLET_POOL_SIZE',
    parse: size,
    default: '50Gi',
    help: 'The largest size of the pool file, which holds the files of sandboxes. It starts small, and all its blocks are reserved on the disk.',
  }),
  diskReserveBytes: setting({
    env: 'ISLET_DISK_RESERVE',
    parse: autoOr(size),
    default: 'auto',
    help: 'What the pool leaves free on the disk of the data directory. `auto`: 5 % of the disk, at most 2Gi. When less than a quarter of it is free, the disk is low: the server creates nothing new until there is room.',
  }),
  outputKeepBytes: setting({
    env: 'ISLET_OUTPUT_KEEP',
    parse: size,
    default: '16Mi',
    help: 'How much of the output of a process is kept for later readers, unless the caller sets `keepOutput`.',
  }),
  outputSandboxBytes: setting({
    env: 'ISLET_OUTPUT_SANDBOX',
    parse: size,
    default: '256Mi',
    help: 'How much output of all processes of a sandbox is kept together, and the largest `keepOutput`. Beyond it the oldest output is dropped.',
  }),
  outputTotalBytes: setting({
    env: 'ISLET_OUTPUT_TOTAL',
    parse: autoOr(size),
    default: 'auto',
    help: 'How much output of all sandboxes is kept together. Beyond it the sandbox with most output loses its oldest. `auto`: 5 % of the disk, at least 1Gi.',
  }),
  storeTotalBytes: setting({
    env: 'ISLET_STORE_TOTAL',
    parse: autoOr(size),
    default: 'auto',
    help: "How large the server's database may grow before writes to the stores of sandboxes are refused. It also holds the stores of checkpoints and snapshots. `auto`: 2 % of the disk, at least 1Gi.",
  }),
  memoryTotalBytes: setting({
    env: 'ISLET_MEMORY_TOTAL',
    parse: autoOr(size),
    default: 'auto',
    help: 'How much the memory of hibernated sandboxes and of checkpoints may take on the disk (isolation `gvisor`). Beyond it hibernated sandboxes stay frozen in memory, and checkpoints are made without memory. `auto`: 25 % of the disk, at least 1Gi.',
  }),
  logLevel: setting({
    env: 'ISLET_LOG_LEVEL',
    parse: oneOf(LOG_LEVELS),
    default: 'info',
    help: 'The lowest level that is logged.',
  }),
  logFormat: setting({
    env: 'ISLET_LOG_FORMAT',
    parse: oneOf(LOG_FORMATS),
    default: ({ isTerminal }) => (isTerminal ? 'text' : 'json'),
    defaultText: '`text` on a terminal, else `json`',
    help: 'Log lines for programs (`json`) or for people (`text`).',
  }),
  networkAllow: setting({
    env: 'ISLET_NETWORK_ALLOW',
    parse: list(cidr),
    default: '',
    help: 'Private ranges that sandboxes with a network may still reach, like `10.1.0.0/16,192.168.1.5/32`.',
  }),
  dns: setting({
    env: 'ISLET_DNS',
    parse: list(address),
    default: '',
    defaultText: "the machine's own",
    help: 'Name servers of sandboxes with a network.',
  }),
  maxSandboxes: setting({
    env: 'ISLET_MAX_SANDBOXES',
    parse: integer(1, 100_000),
    default: '1000',
    help: 'How many sandboxes may exist at once; suspended ones count.',
  }),
  memoryCeiling: setting({
    env: 'ISLET_MEMORY_CEILING',
    parse: autoOr(integer(1, 100)),
    default: 'auto',
    help: 'The share of the memory that all sandboxes together may use, in percent. `auto`: leaves 10 % free, at least 512 MiB. Only engine `oci`, like the next two.',
  }),
  cpuCeiling: setting({
    env: 'ISLET_CPU_CEILING',
    parse: autoOr(integer(1, 100)),
    default: 'auto',
    help: 'Their share of the CPU time, in percent. `auto`: all of it, but the server and other programs of the machine come first.',
  }),
  pidsCeiling: setting({
    env: 'ISLET_PIDS_CEILING',
    parse: autoOr(integer(1, 100)),
    default: 'auto',
    help: 'Their share of the processes and threads that the machine can have, in percent. `auto`: 75.',
  }),
  warmMin: setting({
    env: 'ISLET_WARM_MIN',
    parse: autoOr(integer(0, 1000)),
    default: 'auto',
    help: 'How many warm cells always wait, so that a create takes milliseconds; never more than `ISLET_WARM_MAX`. `auto`: as many as take 1 % of the memory, from 4 to 112; they are started after the server, at a lower priority than all other work.',
  }),
  warmMax: setting({
    env: 'ISLET_WARM_MAX',
    parse: integer(0, 1000),
    default: '128',
    help: 'How many warm cells wait at most, after many creates; fewer when memory is low. 0 keeps none.',
  }),
  defaultRuntime: setting({
    env: 'ISLET_DEFAULT_RUNTIME',
    parse: text,
    default: DEFAULTS.runtime,
    help: 'The runtime of a sandbox created without one.',
  }),
  imageDir: setting({
    env: 'ISLET_IMAGE_DIR',
    parse: path,
    default: ({ dataDir }) => join(dataDir, 'images'),
    defaultText: '`<data>/images`',
    help: 'Where images are kept; several servers may share it.',
  }),
  importDirs: setting({
    env: 'ISLET_IMPORT_DIRS',
    parse: list(path),
    default: '',
    help: 'Directories of this machine whose directories and tars may be imported as images by path, separated by commas. Others must be uploaded.',
  }),
  maxMemoryBytes: setting({
    env: 'ISLET_MAX_MEMORY',
    parse: autoOr(size),
    default: 'auto',
    help: 'The most memory that a sandbox may have. `auto`: what the machine has.',
  }),
  maxCpu: setting({
    env: 'ISLET_MAX_CPU',
    parse: autoOr(integer(1, 1024)),
    default: 'auto',
    help: 'The most cores that a sandbox may have. `auto`: what the machine has.',
  }),
  maxPids: setting({
    env: 'ISLET_MAX_PIDS',
    parse: autoOr(integer(16, 4_194_304)),
    default: 'auto',
    help: 'The most processes that a sandbox may have. `auto`: what the machine allows.',
  }),
  maxDiskBytes: setting({
    env: 'ISLET_MAX_DISK',
    parse: autoOr(size),
    default: 'auto',
    help: 'The most disk that a sandbox may have. `auto`: what the pool has.',
  }),
  previewPorts: setting<PortRange | undefined>({
    env: 'ISLET_PREVIEW_PORTS',
    parse: portRange,
    defaultText: 'any free ones',
    help: 'The ports of this machine that previews may take, like `20000-20999`.',
  }),
  previewDomain: setting<PreviewOrigin | undefined>({
    env: 'ISLET_PREVIEW_DOMAIN',
    parse: previewOrigin,
    help: 'The domain below which previews are names, instead of ports: `preview.example.com`, which means https, or `http://preview.localhost:7400`.',
  }),
  drainTimeoutMs: setting({
    env: 'ISLET_DRAIN_TIMEOUT',
    parse: duration,
    default: '10s',
    help: 'How long running requests may take to finish when the server stops.',
  }),
  guestBinary: setting<string | undefined>({
    env: 'ISLET_GUEST_BINARY',
    parse: path,
    help: 'The guest program, instead of the one that belongs to this server.',
    envOnly: true,
  }),
  wardenBinary: setting<string | undefined>({
    env: 'ISLET_WARDEN_BINARY',
    parse: path,
    help: 'The warden program, instead of the one that belongs to this server.',
    envOnly: true,
  }),
}

/** Variables that are read elsewhere. */
export const OTHER_VARIABLES: Record<string, string> = {
  ISLET_CONFIG: 'The config file, a JSON object. Default: `<data>/config.json` if it exists.',
  ISLET_SANDBOX_ID: 'Set inside every sandbox: its id. The server does not read it.',
  ISLET_URL: 'Where clients find the server. The server itself does not read it.',
}
export const OTHER_PREFIXES = ['ISLET_TEST_']

export type SettingName = keyof typeof SETTINGS
export type Config = { [Name in SettingName]: ReturnType<(typeof SETTINGS)[Name]['parse']> }
export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[]
/** A setting whatever its type. */
export const settingOf = (name: SettingName): Setting<unknown> => SETTINGS[name]

/** The name of a setting in the config file: without the unit that its name has in `Config`. */
export function fileKey(name: SettingName): string {
  return name.replace(/(Ms|Bytes)$/, '')
}

function defaultDataDir(env: Env, isRoot: boolean): string {
  if (isRoot) return '/var/lib/islet'
  const base = env.XDG_DATA_HOME
  return join(base && isAbsolute(base) ? base : join(env.HOME || homedir(), '.local', 'share'), 'islet')
}
