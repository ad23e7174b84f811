import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { buildHostRoot, hostTrees } from '../../image/host.ts'
import { claimInstance, sweepDeadInstances } from '../../instance.ts'
import { nativeBinary } from '../../native.ts'
import { Warden } from '../../warden/warden.ts'
import { engineSuite } from '../engine.suite.ts'
import { type Harness, newId } from '../suite/harness.ts'
import { OciEngine, ociCapabilities } from './oci.ts'
import { probeOci } from './probe.ts'

const IMAGE = 'img-test'
const SILENT = { info() {}, warn() {} }

const problems = (await probeOci()).filter((finding) => !finding.ok && !finding.optional)
if (problems.length > 0) {
  describe('engine oci', () => it('runs', { skip: problems.map(({ detail }) => detail).join(' ') }))
} else {
  await sweepDeadInstances()
  engineSuite(ociCapabilities({ quota: false }), openOci)
}

export async function openOci(): Promise<Harness> {
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
    })
  let warden = await startWarden()
  const makeEngine = () => new OciEngine({ instance, warden, log: SILENT, guest: nativeBinary('guest') })
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
