// The one place that wires a server together, and the way to start and stop one.
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Credentials } from './access/credentials.ts'
import { MagicLinks } from './access/links.ts'
import { Sessions } from './access/sessions.ts'
import { createApi } from './api/api.ts'
import { serveLocally } from './api/http/local-socket.ts'
import { serveApi } from './api/http/serve.ts'
import { InsideSockets } from './api/inside/inside.ts'
import { type Config, loadConfig } from './config.ts'
import { Disk } from './control/disk/disk.ts'
import { DiskRelief } from './control/disk/disk-relief.ts'
import { Fleet } from './control/fleet.ts'
import { Pruning } from './control/prune.ts'
import { Runtimes } from './control/runtimes/runtimes.ts'
import { Sandboxes } from './control/sandboxes.ts'
import { Checkpoints } from './control/saved/checkpoints.ts'
import { SavedStates } from './control/saved/saved-states.ts'
import { Snapshots } from './control/saved/snapshots.ts'
import { warmFloor } from './control/warm/floor.ts'
import { Agents } from './data/agents/agents.ts'
import { CodeRunner } from './data/code/code.ts'
import { EnvFiles } from './data/env-files/env-files.ts'
import { Files } from './data/files/files.ts'
import { Overlays } from './data/overlays/overlays.ts'
import { Patches } from './data/patches/patches.ts'
import { Ports } from './data/ports.ts'
import { Processes } from './data/processes/processes.ts'
import { Services } from './data/services/services.ts'
import { Signals } from './data/signals/signals.ts'
import { Store } from './data/store.ts'
import { Terminals } from './data/terminals.ts'
import { Watchers } from './data/watchers/watchers.ts'
import { openDb } from './db/db.ts'
import { KEEP_UNUSED_MS } from './image/gc.ts'
import type { Images } from './image/image.ts'
import { createImages } from './image/images.ts'
import { claimInstance, sweepDeadInstances } from './instance.ts'
import { loadOrCreateKey } from './key.ts'
import { Connections } from './listen/connections.ts'
import { createLog, type Log } from './log.ts'
import { Previews } from './preview/previews.ts'
import { Cleanup } from './start/cleanup.ts'
import { openEngine } from './start/engine.ts'
import { groupOfKey, letThrough } from './start/key-group.ts'
import { maxConnections, openCertificate } from './start/listening.ts'
import { Ballast } from './storage/ballast.ts'
import { reserveBytes, shareBytes } from './storage/room.ts'
import { Tokens } from './tokens.ts'

export { isLoopback } from './config/loopback.ts'
export type { Config } from './config.ts'
export { ConfigError, loadConfig } from './config.ts'
export { isDataDir, removeServer } from './start/removal.ts'

export interface Server {
  url: string
  /** The admin key. */
  key: string
  /** Where clients of this machine find the key; undefined when it was configured. */
  keyPath: string | undefined
  dataDir: string
  /** Where clients of this machine reach it; undefined where the data directory can hold no socket. */
  socketPath: string | undefined
  /** Resolves with a sentence if the server cannot continue: end the process and start another one; sandboxes keep running. */
  failed: Promise<string>
  /**
   * Waits for running requests, then shuts down. Sandboxes keep running and the next server on this data directory adopts them;
   * with `all` they are stopped, and only the data directory stays on the machine.
   */
  close(options?: { all?: boolean }): Promise<void>
}

export interface StartOptions {
  log?: Log
  /** The data directory is temporary: closing removes it, and if this process is killed the next one does. */
  ephemeral?: boolean
}

export async function startServer(config: Config, options: StartOptions = {}): Promise<Server> {
  const log = options.log ?? createLog({ level: config.logLevel, format: config.logFormat })
  const cleanup = new Cleanup()
  try {
    return await wire(config, { ...options, log }, cleanup)
  } catch (error) {
    // If no sandbox keeps running, nothing needs to stay on the machine.
    await cleanup.run({ all: options.ephemeral || cleanup.isIdle() })
    throw error
  }
}

/**
 * A separate server in a new temporary data directory; closing it removes everything. It uses the images of the ordinary data
 * directory if there is one.
 */
export async function startEphemeral(overrides: { logLevel?: string } = {}): Promise<Server> {
  const env = { ...process.env, ISLET_API_KEY: undefined, ISLET_URL: undefined }
  const { imageDir } = loadConfig({ env })
  const dataDir = await mkdtemp(join(temporaryDirectory(), 'islet-'))
  const fixed = {
    dataDir,
    port: 0,
    host: '127.0.0.1',
    storage: 'copy',
    // The server runs one sandbox, which would start before a cell is warm.
    warmMax: 0,
    ...(existsSync(imageDir) && { imageDir }),
  }
  const config = loadConfig({ env, overrides: { logLevel: 'silent', ...overrides, ...fixed } })
  // It listens on loopback, which no certificate covers.
  config.tlsCert = config.tlsKey = undefined
  try {
    const server = await startServer(config, { ephemeral: true })
    return {
      ...server,
      async close() {
        await server.close({ all: true })
        await rm(dataDir, { recursive: true, force: true })
      },
    }
  } catch (error) {
    await rm(dataDir, { recursive: true, force: true })
    throw error
  }
}

/**
 * On a disk: /tmp may be a tmpfs, which sandboxes would fill, and on which kernels before 6.3 cannot mount layers with shifted ids.
 */
function temporaryDirectory(): string {
  return process.env.TMPDIR || !existsSync('/var/tmp') ? tmpdir() : '/var/tmp'
}

function ceilingsOf(config: Config) {
  const given = <T>(value: number | 'auto', make: (value: number) => T) =>
    value === 'auto' ? undefined : make(value)
  return {
    ...given(config.maxMemoryBytes, (memoryBytes) => ({ memoryBytes })),
    ...given(config.maxCpu, (cores) => ({ cpuMillis: cores * 1000 })),
    ...given(config.maxPids, (pids) => ({ pids })),
    ...given(config.maxDiskBytes, (diskBytes) => ({ diskBytes })),
  }
}

async function wire(config: Config, options: StartOptions & { log: Log }, cleanup: Cleanup): Promise<Server> {
  const { log } = options
  await mkdir(config.dataDir, { recursive: true, mode: 0o700 })
  // First: on a full disk nothing else could be written.
  const ballast = new Ballast(config.dataDir)
  const certificate = openCertificate(config, log)
  cleanup.add(() => certificate?.close())
  const max = config.maxConnections === 'auto' ? maxConnections() : config.maxConnections
  const connections = new Connections({ max })
  await sweepDeadInstances()
  const instance = await claimInstance({ dataDir: config.dataDir, ephemeral: options.ephemeral })
  cleanup.add(({ all }) => all && instance.release())
  const db = openDb(instance.dataDir)
  db.onFull = () => ballast.give()
  cleanup.add(() => db[Symbol.dispose]())
  const gid = options.ephemeral ? undefined : groupOfKey(config, log)
  const key = loadOrCreateKey(instance.dataDir, { configured: config.apiKey, gid, log })
  const members = key.path === undefined ? undefined : gid
  letThrough(instance.dataDir, members)

  const tokens = await Tokens.open(instance.dataDir, { log })

  const { engine, storage, failed } = await openEngine({ config, instance, log }, cleanup)
  const images = createImages({
    imagesDir: config.imageDir,
    inUse: async () => sandboxes.imagesInUse(),
    alone: (work) => fleet.warm.withoutRoots(work),
    log: (line) => log.info(line),
  })
  const { maxSandboxes, defaultRuntime } = config
  const warm = { min: config.warmMin === 'auto' ? warmFloor() : config.warmMin, max: config.warmMax }
  const share = (setting: number | 'auto', part: number) => shareBytes(instance.dataDir, setting, part)
  const disk = new Disk({
    dataDir: instance.dataDir,
    storage,
    ballast,
    reserveBytes: reserveBytes(instance.dataDir, config.diskReserveBytes),
    db,
    storeBytes: share(config.storeTotalBytes, 0.02),
    log,
  })
  const fleet = new Fleet({ db, engine, storage, log, disk, warm, ceilings: ceilingsOf(config) })
  const { events } = fleet
  const savedStates = new SavedStates(fleet, {
    dir: join(instance.dataDir, 'memory'),
    limitBytes: share(config.memoryTotalBytes, 0.25),
  })
  const snapshots = new Snapshots({ fleet, savedStates, images })
  const collects = config.imageDir === join(instance.dataDir, 'images')
  // Other servers that share the images may use what this one does not.
  const collect = async () => collects && images.collect({ unusedMs: KEEP_UNUSED_MS })
  const runtimes = new Runtimes({ fleet, images, collect })
  const sandboxes = new Sandboxes({
    fleet,
    savedStates,
    images,
    runtimes,
    maxSandboxes,
    defaultRuntime,
    snapshots,
    setPort: (...args) => previews.setPort(...args),
  })
  const checkpoints = new Checkpoints({ fleet, savedStates, sandboxes })
  const output = {
    dir: join(instance.dataDir, 'output'),
    keepBytes: Math.min(config.outputKeepBytes, config.outputSandboxBytes),
    sandboxBytes: config.outputSandboxBytes,
    totalBytes: share(config.outputTotalBytes, 0.05),
    hasRoom: () => !disk.isMachineLow,
  }
  const processes = new Processes({ db, sandboxes, events, output, log })
  const files = new Files(sandboxes, output)
  const sessions = new Sessions({ db, sandboxes, log })
  cleanup.add(() => sessions.close())
  const links = new MagicLinks({ db, sandboxes, sessions, log })
  cleanup.add(() => links.close())
  const credentials = new Credentials({ key, tokens, sessions, sandboxes })
  const access = { sessions, links, credentials }
  const previews = new Previews({ db, sandboxes, credentials, log, config, connections, certificate })
  const previewUrl = (sandboxId: string, port: number) => previews.urlOf(sandboxId, port)
  const ports = new Ports({ sandboxes, log })
  const signals = new Signals({ sandboxes, ports, log, previewUrl })
  const envFiles = new EnvFiles({ files })
  const services = new Services({
    db,
    sandboxes,
    events,
    processes,
    files,
    envFiles,
    ports,
    signals,
    log,
    previewUrl,
  })
  const patches = new Patches({ fleet, sandboxes, checkpoints, processes, log })
  const inside = {
    code: new CodeRunner({ sandboxes, processes }),
    agents: new Agents({ db, sandboxes, processes }),
    terminals: new Terminals({ db, sandboxes, processes, log }),
    watchers: new Watchers({ db, sandboxes, log }),
    overlays: new Overlays({ db, sandboxes, log }),
    store: new Store({ db, sandboxes, log, assertRoom: () => disk.assertStoreRoom() }),
    envFiles,
    services,
    ports,
    previews,
    signals,
  }
  cleanup.add(() => inside.store.close())
  cleanup.isIdle = () => sandboxes.info().sandboxes === 0
  cleanup.add(async (closing) => {
    await inside.overlays.close()
    // Sandboxes that keep running must not look as if their processes had ended.
    if (!closing.all) {
      services.close()
      processes.close()
    }
    await sandboxes.close(closing)
    processes.closeOutputs()
  })
  const pruning = new Pruning({
    fleet,
    checkpoints,
    images: collects ? images : undefined,
    outputDir: output.dir,
  })
  const state = { fleet, checkpoints, snapshots, patches, pruning }
  const parts = { sandboxes, processes, files, ...inside, ...state }
  const api = createApi({ ...parts, ...access, images, runtimes, tokens, log, config })
  const insideSockets = new InsideSockets({ api, sandboxes, tokens, log })
  cleanup.add(() => insideSockets.close())
  await sandboxes.start()
  const relief = new DiskRelief({ fleet, disk, suspension: sandboxes.suspension })
  cleanup.add(() => relief.close())
  snapshots.start()
  cleanup.add(() => snapshots.close())
  cleanup.add(() => previews.close({ timeoutMs: 0 }))
  await previews.start()
  const hasImages = engine.capabilities.wall === true
  const prepared = (hasImages ? prepareImages(images, sandboxes, collect) : sandboxes.keepWarm()).catch(
    (error) => log.warn({ error }, 'images not prepared'),
  )
  cleanup.add(() => prepared)
  const served = await serveApi(api, { host: config.host, port: config.port, connections, certificate })
  previews.servedAt(served.port)
  const drain = { timeoutMs: config.drainTimeoutMs }
  const { dataDir } = instance
  const local = options.ephemeral
    ? undefined
    : await serveLocally(api, { dataDir, gid: members, url: served.url, maxConnections: max }).catch(
        (error) => {
          log.warn({ err: error, dataDir }, 'no socket can be made in the data directory')
        },
      )
  cleanup.add(() => Promise.all([served.close(drain), local?.close(drain), previews.close(drain)]))
  cleanup.add(() => fleet.leave())
  cleanup.add(() => runtimes.close())
  cleanup.add(() => services.leave())
  cleanup.add(() => processes.leave())
  const socketPath = local?.path
  log.info(
    { url: served.url, socketPath, dataDir: instance.dataDir, engine: engine.capabilities.engine },
    'islet is up',
  )
  return {
    url: served.url,
    key: key.reveal(),
    keyPath: key.path,
    dataDir: instance.dataDir,
    socketPath,
    failed,
    // If no sandbox is left, nothing needs to stay on the machine.
    close: async (closing = {}) => cleanup.run({ all: closing.all || cleanup.isIdle() }),
  }
}

/**
 * Builds the host image, so that the first sandbox does not wait for it, and removes unused images.
 */
async function prepareImages(
  images: Images,
  sandboxes: Sandboxes,
  collect: () => Promise<unknown>,
): Promise<void> {
  try {
    await images.resolve('host')
  } finally {
    await sandboxes.keepWarm()
  }
  await collect()
}
