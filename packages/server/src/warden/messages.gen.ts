// Printed by npm run gen from native/warden/message.def. Do not edit.
// biome-ignore-all format: printed by a script
import type { FieldTable } from '../wire/fields.ts'

export const GENERATION = 1
export const MAX_NAME = 63
export const MAX_LOWERS = 64
export const MAX_TREES = 4
export const MAX_ETC_FILES = 8
export const MAX_ETC_FILE_BYTES = 4096
export const UIDS_PER_SANDBOX = 65536

export const MESSAGE = {
  OK: 1,
  ERROR: 2,
  HELLO: 3,
  LAYER_CREATE: 16,
  LAYER_CLONE: 17,
  LAYER_DELETE: 18,
  LAYER_LIMIT: 19,
  LAYER_USAGE: 20,
  LAYER_LIST: 21,
  LAYER_FLATTEN: 22,
  LAYER_SYNC: 23,
  BIND: 32,
  CELL_START: 33,
  CELL_RUN: 34,
  CELL_PAUSE: 35,
  CELL_SAVE: 36,
  CELL_SETTLE: 37,
  CELL_NETWORK: 38,
  CGROUP_LIMIT: 48,
  CGROUP_FREEZE: 49,
  CGROUP_STAT: 50,
  CGROUP_KILL: 51,
  CGROUP_DELETE: 52,
  CGROUP_LIST: 53,
  CGROUP_RECLAIM: 54,
  CGROUP_CEILING: 55,
  CGROUP_YIELD: 56,
  BRIDGE_CREATE: 64,
  BRIDGE_DELETE: 65,
  VETH_DELETE: 66,
  VETH_LIST: 67,
} as const

export type MessageName = keyof typeof MESSAGE

/** Who may send a message. */
export const SENDER = {
  OK: 'warden',
  ERROR: 'warden',
  HELLO: 'server',
  LAYER_CREATE: 'server',
  LAYER_CLONE: 'server',
  LAYER_DELETE: 'server',
  LAYER_LIMIT: 'server',
  LAYER_USAGE: 'server',
  LAYER_LIST: 'server',
  LAYER_FLATTEN: 'server',
  LAYER_SYNC: 'server',
  BIND: 'server',
  CELL_START: 'server',
  CELL_RUN: 'server',
  CELL_PAUSE: 'server',
  CELL_SAVE: 'server',
  CELL_SETTLE: 'server',
  CELL_NETWORK: 'server',
  CGROUP_LIMIT: 'server',
  CGROUP_FREEZE: 'server',
  CGROUP_STAT: 'server',
  CGROUP_KILL: 'server',
  CGROUP_DELETE: 'server',
  CGROUP_LIST: 'server',
  CGROUP_RECLAIM: 'server',
  CGROUP_CEILING: 'server',
  CGROUP_YIELD: 'server',
  BRIDGE_CREATE: 'server',
  BRIDGE_DELETE: 'server',
  VETH_DELETE: 'server',
  VETH_LIST: 'server',
} as const

export type LowerRecord = {
  kind?: number
  name?: string
  tree?: string
}

const LOWER_RECORD: FieldTable = [
  { tag: 1, name: 'kind', kind: 'u32' },
  { tag: 2, name: 'name', kind: 'str' },
  { tag: 3, name: 'tree', kind: 'str' },
]

export type TreeRecord = {
  tree?: string
  at?: string
  lower?: LowerRecord[]
}

const TREE_RECORD: FieldTable = [
  { tag: 1, name: 'tree', kind: 'str' },
  { tag: 2, name: 'at', kind: 'str' },
  { tag: 3, name: 'lower', kind: LOWER_RECORD, list: true },
]

export type EtcFileRecord = {
  name?: string
  content?: Uint8Array
}

const ETC_FILE_RECORD: FieldTable = [
  { tag: 1, name: 'name', kind: 'str' },
  { tag: 2, name: 'content', kind: 'bytes' },
]

export type LimitsRecord = {
  memoryBytes?: number
  cpuMillis?: number
  pids?: number
}

const LIMITS_RECORD: FieldTable = [
  { tag: 1, name: 'memoryBytes', kind: 'u64' },
  { tag: 2, name: 'cpuMillis', kind: 'u32' },
  { tag: 3, name: 'pids', kind: 'u32' },
]

export type NetworkRecord = {
  veth?: string
  address?: string
  prefix?: number
  gateway?: string
}

const NETWORK_RECORD: FieldTable = [
  { tag: 1, name: 'veth', kind: 'str' },
  { tag: 2, name: 'address', kind: 'str' },
  { tag: 3, name: 'prefix', kind: 'u32' },
  { tag: 4, name: 'gateway', kind: 'str' },
]

export type CgroupStatRecord = {
  memoryBytes?: number
  memoryPeakBytes?: number
  cpuUsec?: number
  pids?: number
  oomKills?: number
  frozen?: number
}

const CGROUP_STAT_RECORD: FieldTable = [
  { tag: 1, name: 'memoryBytes', kind: 'u64' },
  { tag: 2, name: 'memoryPeakBytes', kind: 'u64' },
  { tag: 3, name: 'cpuUsec', kind: 'u64' },
  { tag: 4, name: 'pids', kind: 'u32' },
  { tag: 5, name: 'oomKills', kind: 'u64' },
  { tag: 6, name: 'frozen', kind: 'u32' },
]

export type OkFields = {
  bytes?: number
  stat?: CgroupStatRecord
  method?: string
  durationUs?: number
  quota?: number
  name?: string[]
  etc?: number
}

export type ErrorFields = {
  kind?: number
  errnoName?: string
  stage?: string
  message?: string
}

export type HelloFields = {
  generation?: number
}

export type LayerCreateFields = {
  layer?: string
  limitBytes?: number
}

export type LayerCloneFields = {
  from?: string
  to?: string
  limitBytes?: number
  readOnly?: number
}

export type LayerDeleteFields = {
  layer?: string
}

export type LayerLimitFields = {
  layer?: string
  limitBytes?: number
}

export type LayerUsageFields = {
  layer?: string
}

export type LayerListFields = Record<never, never>

export type LayerFlattenFields = {
  from?: string[]
  to?: string
}

export type LayerSyncFields = Record<never, never>

export type BindFields = {
  pid?: number
  uidBase?: number
  layer?: string
  tree?: TreeRecord[]
  hostname?: string
  cgroup?: string
  limits?: LimitsRecord
  network?: NetworkRecord
  etc?: EtcFileRecord[]
}

export type CellStartFields = {
  cell?: string
  uidBase?: number
  background?: number
  network?: NetworkRecord
}

export type CellRunFields = {
  cell?: string
  uidBase?: number
  layer?: string
  tree?: TreeRecord[]
  network?: NetworkRecord
  restore?: number
}

export type CellPauseFields = {
  cell?: string
  paused?: number
}

export type CellSaveFields = {
  cell?: string
}

export type CellSettleFields = {
  cell?: string
  hostname?: string
  limits?: LimitsRecord
}

export type CellNetworkFields = {
  pid?: number
  uidBase?: number
  network?: NetworkRecord
}

export type CgroupLimitFields = {
  cgroup?: string
  limits?: LimitsRecord
}

export type CgroupFreezeFields = {
  cgroup?: string
  frozen?: number
}

export type CgroupStatFields = {
  cgroup?: string
}

export type CgroupKillFields = {
  cgroup?: string
}

export type CgroupDeleteFields = {
  cgroup?: string
}

export type CgroupListFields = Record<never, never>

export type CgroupReclaimFields = {
  cgroup?: string
}

export type CgroupCeilingFields = {
  limits?: LimitsRecord
}

export type CgroupYieldFields = Record<never, never>

export type BridgeCreateFields = {
  address?: string
  prefix?: number
}

export type BridgeDeleteFields = Record<never, never>

export type VethDeleteFields = {
  veth?: string
  address?: string
}

export type VethListFields = Record<never, never>

/** The fields of each message; null where the payload is raw bytes. */
export const FIELDS: Record<MessageName, FieldTable | null> = {
  OK: [
    { tag: 1, name: 'bytes', kind: 'u64' },
    { tag: 2, name: 'stat', kind: CGROUP_STAT_RECORD },
    { tag: 3, name: 'method', kind: 'str' },
    { tag: 4, name: 'durationUs', kind: 'u64' },
    { tag: 5, name: 'quota', kind: 'u32' },
    { tag: 6, name: 'name', kind: 'str', list: true },
    { tag: 7, name: 'etc', kind: 'u32' },
  ],
  ERROR: [
    { tag: 1, name: 'kind', kind: 'u32' },
    { tag: 2, name: 'errnoName', kind: 'str' },
    { tag: 3, name: 'stage', kind: 'str' },
    { tag: 4, name: 'message', kind: 'str' },
  ],
  HELLO: [
    { tag: 1, name: 'generation', kind: 'u32' },
  ],
  LAYER_CREATE: [
    { tag: 1, name: 'layer', kind: 'str' },
    { tag: 2, name: 'limitBytes', kind: 'u64' },
  ],
  LAYER_CLONE: [
    { tag: 1, name: 'from', kind: 'str' },
    { tag: 2, name: 'to', kind: 'str' },
    { tag: 3, name: 'limitBytes', kind: 'u64' },
    { tag: 4, name: 'readOnly', kind: 'u32' },
  ],
  LAYER_DELETE: [
    { tag: 1, name: 'layer', kind: 'str' },
  ],
  LAYER_LIMIT: [
    { tag: 1, name: 'layer', kind: 'str' },
    { tag: 2, name: 'limitBytes', kind: 'u64' },
  ],
  LAYER_USAGE: [
    { tag: 1, name: 'layer', kind: 'str' },
  ],
  LAYER_LIST: [],
  LAYER_FLATTEN: [
    { tag: 1, name: 'from', kind: 'str', list: true },
    { tag: 2, name: 'to', kind: 'str' },
  ],
  LAYER_SYNC: [],
  BIND: [
    { tag: 1, name: 'pid', kind: 'u32' },
    { tag: 2, name: 'uidBase', kind: 'u32' },
    { tag: 3, name: 'layer', kind: 'str' },
    { tag: 4, name: 'tree', kind: TREE_RECORD, list: true },
    { tag: 5, name: 'hostname', kind: 'str' },
    { tag: 6, name: 'cgroup', kind: 'str' },
    { tag: 7, name: 'limits', kind: LIMITS_RECORD },
    { tag: 8, name: 'network', kind: NETWORK_RECORD },
    { tag: 9, name: 'etc', kind: ETC_FILE_RECORD, list: true },
  ],
  CELL_START: [
    { tag: 1, name: 'cell', kind: 'str' },
    { tag: 2, name: 'uidBase', kind: 'u32' },
    { tag: 3, name: 'background', kind: 'u32' },
    { tag: 4, name: 'network', kind: NETWORK_RECORD },
  ],
  CELL_RUN: [
    { tag: 1, name: 'cell', kind: 'str' },
    { tag: 2, name: 'uidBase', kind: 'u32' },
    { tag: 3, name: 'layer', kind: 'str' },
    { tag: 4, name: 'tree', kind: TREE_RECORD, list: true },
    { tag: 5, name: 'network', kind: NETWORK_RECORD },
    { tag: 6, name: 'restore', kind: 'u32' },
  ],
  CELL_PAUSE: [
    { tag: 1, name: 'cell', kind: 'str' },
    { tag: 2, name: 'paused', kind: 'u32' },
  ],
  CELL_SAVE: [
    { tag: 1, name: 'cell', kind: 'str' },
  ],
  CELL_SETTLE: [
    { tag: 1, name: 'cell', kind: 'str' },
    { tag: 2, name: 'hostname', kind: 'str' },
    { tag: 3, name: 'limits', kind: LIMITS_RECORD },
  ],
  CELL_NETWORK: [
    { tag: 1, name: 'pid', kind: 'u32' },
    { tag: 2, name: 'uidBase', kind: 'u32' },
    { tag: 3, name: 'network', kind: NETWORK_RECORD },
  ],
  CGROUP_LIMIT: [
    { tag: 1, name: 'cgroup', kind: 'str' },
    { tag: 2, name: 'limits', kind: LIMITS_RECORD },
  ],
  CGROUP_FREEZE: [
    { tag: 1, name: 'cgroup', kind: 'str' },
    { tag: 2, name: 'frozen', kind: 'u32' },
  ],
  CGROUP_STAT: [
    { tag: 1, name: 'cgroup', kind: 'str' },
  ],
  CGROUP_KILL: [
    { tag: 1, name: 'cgroup', kind: 'str' },
  ],
  CGROUP_DELETE: [
    { tag: 1, name: 'cgroup', kind: 'str' },
  ],
  CGROUP_LIST: [],
  CGROUP_RECLAIM: [
    { tag: 1, name: 'cgroup', kind: 'str' },
  ],
  CGROUP_CEILING: [
    { tag: 1, name: 'limits', kind: LIMITS_RECORD },
  ],
  CGROUP_YIELD: [],
  BRIDGE_CREATE: [
    { tag: 1, name: 'address', kind: 'str' },
    { tag: 2, name: 'prefix', kind: 'u32' },
  ],
  BRIDGE_DELETE: [],
  VETH_DELETE: [
    { tag: 1, name: 'veth', kind: 'str' },
    { tag: 2, name: 'address', kind: 'str' },
  ],
  VETH_LIST: [],
}

export interface FieldsOf {
  OK: OkFields
  ERROR: ErrorFields
  HELLO: HelloFields
  LAYER_CREATE: LayerCreateFields
  LAYER_CLONE: LayerCloneFields
  LAYER_DELETE: LayerDeleteFields
  LAYER_LIMIT: LayerLimitFields
  LAYER_USAGE: LayerUsageFields
  LAYER_LIST: LayerListFields
  LAYER_FLATTEN: LayerFlattenFields
  LAYER_SYNC: LayerSyncFields
  BIND: BindFields
  CELL_START: CellStartFields
  CELL_RUN: CellRunFields
  CELL_PAUSE: CellPauseFields
  CELL_SAVE: CellSaveFields
  CELL_SETTLE: CellSettleFields
  CELL_NETWORK: CellNetworkFields
  CGROUP_LIMIT: CgroupLimitFields
  CGROUP_FREEZE: CgroupFreezeFields
  CGROUP_STAT: CgroupStatFields
  CGROUP_KILL: CgroupKillFields
  CGROUP_DELETE: CgroupDeleteFields
  CGROUP_LIST: CgroupListFields
  CGROUP_RECLAIM: CgroupReclaimFields
  CGROUP_CEILING: CgroupCeilingFields
  CGROUP_YIELD: CgroupYieldFields
  BRIDGE_CREATE: BridgeCreateFields
  BRIDGE_DELETE: BridgeDeleteFields
  VETH_DELETE: VethDeleteFields
  VETH_LIST: VethListFields
}

export const ERROR_KIND = {
  BAD_REQUEST: 1,
  NOT_FOUND: 2,
  EXISTS: 3,
  NO_SPACE: 4,
  DENIED: 5,
  UNSUPPORTED: 6,
  BUSY: 7,
  SYSTEM: 8,
} as const

export type ErrorKind = keyof typeof ERROR_KIND
