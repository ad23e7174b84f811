// A real instance with a real warden and the host image, for the suite and for benchmarks.
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildHostRoot, hostTrees } from '../../image/host/host.ts'
import { claimInstance } from '../../instance.ts'
import { nativeBinary } from '../../native.ts'
import { Warden, type WardenOptions } from '../../warden/warden.ts'
import { type Harness, newId } from '../suite/harness.ts'
import { OciEngine, type OciOptions } from './oci.ts'
import { cellOptions } from './runtime.ts'
import type { WallEngine, WallOptions } from './wall.ts'

const IMAGE = 'img-test'
const SILENT = { info() {}, warn() {} }

export function openOci({ runtime = 'runc', ...options }: Partial<OciOptions> = {}): Promise<Harness> {
  return openWall(
    (parts) => new OciEngine({ ...parts, runtime }),
    (runDir) => cellOptions(runtime, runDir),
    options,
  )
}

export async function openWall(
  make: (options: WallOptions) => WallEngine,
  cells: (runDir: string) => WardenOptions['cells'],
  options: Partial<WallOptions>,
): Promise<Harness> {
  const dataDir = await mkdtemp(join(tmpdir(), 'islet-oci-'))
  const instance = await claimInstance({ dataDir, ephemeral: true })
  await mkdir(join(dataDir, 'images', IMAGE), { recursive: true })
  await buildHostRoot('/', join(dataDir, 'images', IMAGE, 'root'))
  const startWarden = () =>
    Warden.start({
      dataDir,
      runDir: join(instance.runDir, 'warden'),
      bridge: instance.bridge,
      cgroup: instance.cgroup,
      uidStart: instance.uidStart,
      uidCount: instance.uidRanges,
      binary: nativeBinary('warden'),
      cells: cells(instance.runDir),
    })
  let warden = await startWarden()
  const makeEngine = () => make({ instance, warden, log: SILENT, guest: nativeBinary('guest'), ...options })
  let engine = makeEngine()
  return {
    get engine() {
      return engine
    },
    instance,
    async newRoot() {
      const layer = newId()
      await warden.request('LAYER_CREATE', { layer })
      return { layer, trees: hostTrees(IMAGE) }
    },
    async copyRoot(root) {
      const layer = newId()
      await warden.request('LAYER_CLONE', { from: root.layer, to: layer })
      return { ...root, layer }
    },
    async restart() {
      await engine.close()
      await warden.close()
      warden = await startWarden()
      engine = makeEngine()
      return engine
    },
    async close() {
      await engine.close({ all: true })
      await warden.close()
      await instance.release()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
