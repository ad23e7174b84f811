// An engine makes walls: it starts a guest behind a wall, gives it a root and limits, freezes it and destroys it. Everything
// else goes through the guest. Every engine passes engine.suite.ts.
import { IsletError } from '@islet/contract'
import type { Tree } from '../image/image.ts'

type EngineName = 'oci' | 'process'
export type Isolation = 'namespace' | 'gvisor' | 'none'

/** The abilities of an engine, as data. The suite skips a declared gap and prints its reason; an undeclared gap fails. */
export interface EngineCapabilities {
  engine: EngineName
  isolation: Isolation
  /** The guest runs before its root is known, so one pool of cells serves every image. */
  lateRoot: Capability
  /** Root, users, processes and files of the host and of other sandboxes are out of reach. */
  wall: Capability
  memoryLimit: Capability
  /** Only the process that exceeds the memory limit is killed; the sandbox keeps running. */
  memoryKill: Capability
  cpuLimit: Capability
  pidsLimit: Capability
  diskLimit: Capability
  network: Capability
  /** The network of a running sandbox can be switched on and off. */
  networkSwitch: Capability
  freeze: Capability
  memoryCheckpoint: Capability
  /** Commands can run as users other than the server's. */
  users: Capability
  /** Set-user-id bits work, and so does sudo. */
  setuid: Capability
}

/** True, or a sentence that says why not. */
export type Capability = true | { missing: string }

/** The error for a call that needs a missing capability. */
export function notSupported(capability: Capability): IsletError {
  return new IsletError(
    'not_supported',
    capability === true ? 'This engine cannot do that.' : capability.missing,
  )
}

export function cellGone(id: string, cause?: unknown): IsletError {
  return new IsletError('sandbox_lost', `The cell ${id} is gone.`, cause === undefined ? {} : { cause })
}

/**
 * A cell is a started (or startable) wall. It belongs to at most one sandbox, ever. After a restart of the server the engine
 * finds it again by its files in the run directory.
 */
export interface Cell {
  id: string
  /** The directory with link.sock in it; the server listens there before `prepare`. */
  linkDir: string
  /** The same directory as programs inside see it; it also has `islet-signal` and inside.sock. */
  insideDir: string
}

export interface Root {
  /** The sandbox's own layer. */
  layer: string
  /** The trees below the layer, by mount point; `/` first. Engines without images ignore them. */
  trees: readonly Tree[]
}

export interface Limits {
  memoryBytes: number
  cpuMillis: number
  pids: number
}

export interface PrepareOptions {
  /** No caller waits for it: the start runs at the lowest priority. The guest itself gets the normal one. */
  background?: boolean
}

export interface BindOptions {
  root: Root
  hostname: string
  limits: Limits
  network: { enabled: boolean }
  /** Files of /etc (hosts, hostname ...) by name. If it can, the engine writes them before anything sees the root. */
  etc?: (place: Pick<Bound, 'address' | 'nameserver'>) => Record<string, string>
  /** A directory written by `saveMemory`: the saved processes continue. Only with `memoryCheckpoint`. */
  memory?: string
  /** Bound ahead of demand: no sandbox has the cell yet, and it may be bound again to another root. Only with `lateRoot`. */
  ahead?: boolean
}

/** Results of `bind` that the guest's files need. */
export interface Bound {
  /** True: the engine wrote the files of `etc`; else the guest has to write them. */
  hasEtc?: boolean
  /** Nameserver for /etc/resolv.conf; absent without network. */
  nameserver?: string
  address?: string
  /** The default working directory of commands; engine `process` only. */
  workspace?: string
}

export interface Usage {
  memoryBytes: number
  memoryPeakBytes: number
  cpuUsec: number
  pids: number
  oomKills: number
}

export interface Engine {
  readonly capabilities: EngineCapabilities
  /**
   * Prepares the machine and removes every cell, veth and cgroup of this instance that is not in `keep`, which maps cell ids
   * to the layers that their roots must have. Returns the ids of the kept cells that are alive.
   */
  start(keep: ReadonlyMap<string, string>): Promise<Set<string>>
  /** Makes the directory of a new cell; listen on `linkDir/link.sock`, then call `prepare`. */
  allocate(id: string): Promise<Cell>
  /** How many more cells it can have. Absent: no limit of its own. */
  room?(): number
  /** Starts the guest behind its wall. Engines without `lateRoot` do that in `bind`. */
  prepare(cell: Cell, options?: PrepareOptions): Promise<void>
  /**
   * Gives the cell its root, name, limits and network. On an error, destroy the cell. A cell that was bound `ahead` and not used
   * may be bound again; nothing of its first root stays visible.
   */
  bind(cell: Cell, options: BindOptions): Promise<Bound>
  /** A cell this engine made before the server was restarted. Listen on its socket again, then call `ownSocket`. */
  adopt(id: string): Promise<Cell>
  /** Lets only the guest connect to a socket that was made again. `prepare` does it, too. */
  ownSocket(cell: Cell): Promise<void>
  limit(cell: Cell, limits: Limits): Promise<void>
  /**
   * Gives a bound cell, frozen or not, a network, or takes it away and ends its connections. Does nothing if it is in that state
   * already. Only with `networkSwitch`.
   */
  connect(cell: Cell, network: BindOptions['network']): Promise<Pick<Bound, 'address' | 'nameserver'>>
  freeze(cell: Cell): Promise<void>
  thaw(cell: Cell): Promise<void>
  /**
   * Reclaims memory of a frozen cell: page cache, and anonymous pages if there is swap. Engines that cannot do it do nothing.
   */
  reclaim(cell: Cell): Promise<void>
  /**
   * Writes the memory of a frozen cell to an empty directory. Its link must be suspended. Only with
   * `memoryCheckpoint`; the cell stays frozen and can be thawed or destroyed.
   */
  saveMemory(cell: Cell, directory: string): Promise<void>
  usage(cell: Cell): Promise<Usage>
  /** Updates the memory figures that programs inside read, if the engine writes them itself. */
  show?(cell: Cell, limits: Limits): Promise<void>
  /** Whether its first process is alive. */
  alive(cell: Cell): Promise<boolean>
  /** Kills everything in it and removes every trace. Does nothing if the cell is gone. */
  destroy(cell: Cell): Promise<void>
  /** Releases this process's own resources; sandboxes keep running. With `all`, also removes cells, bridge, firewall and cgroup. */
  close(options?: { all?: boolean }): Promise<void>
}
