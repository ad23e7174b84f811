import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { claimInstance } from '../../instance.ts'
import { nativeBinary } from '../../native.ts'
import { engineSuite } from '../engine.suite.ts'
import { type Harness, newId } from '../suite/harness.ts'
import { ProcessEngine, processCapabilities } from './process.ts'

engineSuite(processCapabilities(), openProcess)

async function openProcess(): Promise<Harness> {
  const dataDir = await mkdtemp(join(tmpdir(), 'islet-process-'))
  const instance = await claimInstance({ dataDir, ephemeral: true })
  const makeEngine = () => new ProcessEngine({ instance, log: { warn() {} }, guest: nativeBinary('guest') })
  let engine = makeEngine()
  return {
    get engine() {
      return engine
    },
    instance,
    async newRoot() {
      return { layer: newId(), trees: [] }
    },
    async restart() {
      await engine.close()
      engine = makeEngine()
      return engine
    },
    async close() {
      await engine.close({ all: true })
      await instance.release()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
