// An engine makes walls: it starts a guest behind one, gives it a root, limits it, freezes it and takes it away.
// Everything else happens through the guest. Every engine passes engine.suite.ts.
import { IsletError } from '@islet/contract'
import type { Tree } from '../image/image.ts'

export type EngineName = 'oci' | 'process'
export type Isolation = 'namespace' | 'gvisor' | 'none'

/** What an engine can do, as data. A gap that is declared is skipped by the suite with its reason; another fails it. */
export interface EngineCapabilities {
  engine: EngineName
  isolation: Isolation
  /** The guest runs before its root is known, so one pool of cells serves every image. */
  lateRoot: Capability
  /** Root, users, processes and files of the host and of other sandboxes are out of reach. */
  wall: Capability
  memoryLimit: Capability
  /** What passes the memory limit is killed alone; the sandbox lives on. */
  memoryKill: Capability
  cpuLimit: Capability
  pidsLimit: Capability
  diskLimit: Capability
  network: Capability
  /** The network of a sandbox that runs can be turned on and off. */
  networkSwitch: Capability
  freeze: Capability
  memoryCheckpoint: Capability
  /** Commands can run as another user than the server's. */
  users: Capability
  /** Programs with a set-user-id bit get its rights: sudo works. */
  setuid: Capability
}

/** True, or the sentence that says why not. */
export type Capability = true | { missing: string }

/** The error of an engine that was asked for what it declared as missing. */
export function notSupported(capability: Capability): IsletError {
  return new IsletError(
    'not_supported',
    capability === true ? 'This engine cannot do that.' : capability.missing,
  )
}

/**
 * A cell is a started (or startable) wall that no sandbox has used before. It belongs to at most one sandbox, ever.
 * The engine can find it again after a restart of the server by what it wrote to its run directory.
 */
export interface Cell {
  id: string
  /** The directory with link.sock in it; the server listens there before `prepare`. */
  linkDir: string
  /** The same directory as programs inside see it: `islet-signal` and inside.sock are there too. */
  insideDir: string
}

export interface Root {
  /** The sandbox's own layer. */
  layer: string
  /** What is below it, by mount point; `/` first. Engines without images ignore it. */
  trees: readonly Tree[]
}

export interface Limits {
  memoryBytes: number
  cpuMillis: number
  pids: number
}

export interface PrepareOptions {
  /** Nobody waits for it: whatever else runs on the machine goes first. The guest has the priority of all others. */
  background?: boolean
}

export interface BindOptions {
  root: Root
  hostname: string
  limits: Limits
  network: { enabled: boolean }
  /** Files of /etc by their names, which say who and where it is. An engine that can writes them before anything sees the root. */
  etc?: (place: Pick<Bound, 'address' | 'nameserver'>) => Record<string, string>
  /** A directory written by `saveMemory`: what ran then goes on. Only with `memoryCheckpoint`. */
  memory?: string
  /** No record names the cell yet, and the one that will may want another root. Only with `lateRoot`. */
  ahead?: boolean
}

/** What `bind` found out and the guest's files need. */
export interface Bound {
  /** The files of `etc` are there; else the guest has to write them. */
  hasEtc?: boolean
  /** Nameserver for /etc/resolv.conf; absent without network. */
  nameserver?: string
  address?: string
  /** Where commands start when the caller names no directory and the image none; engine `process` only. */
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
   * Makes the machine ready (bridge, firewall, cgroup) and takes away every cell, veth and cgroup of this instance that is not in
   * `keep`: by their ids, the layers that their roots must have. Answers with the ids of the kept cells that are still alive.
   */
  start(keep: ReadonlyMap<string, string>): Promise<Set<string>>
  /** A fresh cell directory for `id`; listen on `linkDir/link.sock`, then call `prepare`. */
  allocate(id: string): Promise<Cell>
  /** How many more it can have. Absent: no bound of its own. */
  room?(): number
  /** Starts the guest behind its wall. Engines without `lateRoot` do that in `bind`. */
  prepare(cell: Cell, options?: PrepareOptions): Promise<void>
  /**
   * Gives the cell its root, name, limits and network. Fails whole: on an error, destroy the cell. One that was bound `ahead` and
   * not used may be bound again, and shows nothing of what it had.
   */
  bind(cell: Cell, options: BindOptions): Promise<Bound>
  /** A cell this engine made before the server was restarted. Listen on its socket again, then call `ownSocket`. */
  adopt(id: string): Promise<Cell>
  /** Lets the guest, and nobody else, connect to a socket made anew. `prepare` does it by itself. */
  ownSocket(cell: Cell): Promise<void>
  limit(cell: Cell, limits: Limits): Promise<void>
  /**
   * Gives a bound cell, frozen or not, a network or takes it away, and its connections with it. As it is already: nothing. Only
   * with `networkSwitch`.
   */
  connect(cell: Cell, network: BindOptions['network']): Promise<Pick<Bound, 'address' | 'nameserver'>>
  freeze(cell: Cell): Promise<void>
  thaw(cell: Cell): Promise<void>
  /**
   * Gives back what memory of a frozen cell can be given back: page cache, and anonymous pages where there is swap. Engines
   * that cannot do nothing.
   */
  reclaim(cell: Cell): Promise<void>
  /**
   * Writes the memory of all that runs in a frozen cell to an empty directory. Its link must be suspended. Only with
   * `memoryCheckpoint`; the cell stays frozen and can be thawed or destroyed.
   */
  saveMemory(cell: Cell, directory: string): Promise<void>
  usage(cell: Cell): Promise<Usage>
  /** Brings up to date what programs inside read of their memory, where that is not a kernel's doing. */
  show?(cell: Cell, limits: Limits): Promise<void>
  /** Whether its first process lives. */
  alive(cell: Cell): Promise<boolean>
  /** Kills everything in it and removes every trace. Of a cell that is gone: nothing. */
  destroy(cell: Cell): Promise<void>
  /** Lets go of this process's own resources; sandboxes go on. With `all`, also bridge, firewall and cgroup parent. */
  close(options?: { all?: boolean }): Promise<void>
}
