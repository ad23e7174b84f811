// Opens the engine and storage that the settings ask for, or throws an error that says why this machine cannot run them.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import type { Config } from '../config.ts'
import type { Engine } from '../engine/engine.ts'
import { GvisorEngine } from '../engine/gvisor/gvisor.ts'
import { OciEngine } from '../engine/oci/oci.ts'
import { probeOci } from '../engine/oci/probe.ts'
import { cellOptions, chooseRuntime } from '../engine/oci/runtime.ts'
import { ProcessEngine } from '../engine/process/process.ts'
import { tearDown } from '../engine/teardown.ts'
import type { Instance } from '../instance.ts'
import type { Log } from '../log.ts'
import { nativeBinary } from '../native.ts'
import { createStorage } from '../storage/layers.ts'
import { openPool } from '../storage/pool.ts'
import { reserveBytes } from '../storage/room.ts'
import type { Storage } from '../storage/storage.ts'
import { openWorkspaces } from '../storage/workspaces.ts'
import { Warden } from '../warden/warden.ts'
import type { Cleanup } from './cleanup.ts'

interface Parts {
  config: Config
  instance: Instance
  log: Log
}

interface OpenEngine {
  engine: Engine
  storage: Storage
  /** Resolves with a sentence if a part that the server needs has died. */
  failed: Promise<string>
}

export function openEngine(parts: Parts, cleanup: Cleanup): Promise<OpenEngine> {
  return parts.config.engine === 'oci' ? openOci(parts, cleanup) : openProcess(parts, cleanup)
}

async function openOci({ config, instance, log }: Parts, cleanup: Cleanup): Promise<OpenEngine> {
  await assertAble()
  const isGvisor = config.isolation === 'gvisor'
  const guest = nativeBinary('guest')
  const binary = nativeBinary('warden')
  const pool = await openPool({
    dataDir: instance.dataDir,
    sizeBytes: config.poolSizeBytes,
    reserveBytes: reserveBytes(instance.dataDir, config.diskReserveBytes),
    method: config.storage,
    endUsers: () => tearDown({ name: instance.cgroup, runDir: instance.runDir }),
    log: (line) => log.warn(line),
  })
  cleanup.add(({ all }) => all && pool.close())
  await mkdir(config.imageDir, { recursive: true, mode: 0o700 })
  const runtime = await chooseRuntime(config.runtimeBinary)
  const warden = await Warden.start({
    dataDir: instance.dataDir,
    runDir: join(instance.runDir, 'warden'),
    imagesDir: config.imageDir,
    bridge: instance.bridge,
    cgroup: instance.cgroup,
    uidStart: instance.uidStart,
    uidCount: instance.uidRanges,
    method: pool.method,
    cells: cellOptions(isGvisor ? 'runsc' : runtime, instance.runDir),
    binary,
  })
  cleanup.add(() => warden.close())
  const options = {
    instance,
    warden,
    log,
    guest,
    ceilings: { memory: config.memoryCeiling, cpu: config.cpuCeiling, pids: config.pidsCeiling },
    allowRanges: config.networkAllow,
    nameservers: config.dns.length > 0 ? config.dns.map((address) => ({ address })) : undefined,
  }
  const engine = isGvisor ? new GvisorEngine(options) : new OciEngine({ ...options, runtime })
  cleanup.add((closing) => engine.close(closing))
  const failed = pool.elastic ? Promise.race([warden.exited, pool.elastic.broken]) : warden.exited
  return { engine, storage: createStorage(warden, pool), failed }
}

async function openProcess({ config, instance, log }: Parts, cleanup: Cleanup): Promise<OpenEngine> {
  if (config.isolation !== 'namespace') {
    throw new IsletError('not_supported', 'Engine process has no wall, so it has no isolation to choose.', {
      hint: 'Unset ISLET_ISOLATION, or use ISLET_ENGINE=oci.',
    })
  }
  const engine = new ProcessEngine({ instance, log, guest: nativeBinary('guest') })
  cleanup.add((closing) => engine.close(closing))
  const storage = await openWorkspaces(join(instance.dataDir, 'workspaces'))
  return { engine, storage, failed: new Promise(() => {}) }
}

async function assertAble(): Promise<void> {
  const missing = (await probeOci()).filter((finding) => !finding.ok && !finding.optional)
  if (missing.length === 0) return
  const mends = [...new Set(missing.flatMap(({ mend }) => mend ?? []))]
  throw new IsletError(
    'engine_unavailable',
    `This machine cannot run sandboxes yet: ${missing.map(({ detail }) => detail).join(' ')}`,
    {
      hint: `${mends.join(' ')} islet doctor shows everything. For trusted code only, ISLET_ENGINE=process needs none of this.`,
      details: { missing },
    },
  )
}
