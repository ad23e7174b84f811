// The document of the OpenComputer SDK: every method, option, default and result, through `islet/opencomputer`.
import { Sandbox } from 'islet/opencomputer'
import { startSuite } from '../support/suite.ts'
import { agentPrograms } from './opencomputer/agent.ts'
import { execPrograms } from './opencomputer/exec.ts'
import { filesPrograms } from './opencomputer/files.ts'
import { ptyPrograms } from './opencomputer/pty.ts'
import { sandboxPrograms } from './opencomputer/sandbox.ts'
import type { World } from './opencomputer/world.ts'
import { testSeed } from './seeds.ts'

const { server, islet } = await startSuite()
process.env.ISLET_URL = server.url
process.env.ISLET_API_KEY = server.key
process.env.OPENCOMPUTER_API_URL = 'http://127.0.0.1:9'
process.env.OPENCOMPUTER_API_KEY = 'a key of somebody else'

const envs = { GREETING: 'hello', ANTHROPIC_API_KEY: 'a key that nothing asks for' }
const sandbox = await Sandbox.create({ template: 'host', envs })
await sandbox.files.write('base', 'base\n')
const world: World = {
  server,
  islet,
  sandbox,
  base: await sandbox.createCheckpoint('base'),
  given: { apiKey: server.key, apiUrl: `${server.url}/` },
  recordOf: ({ sandboxId }) => islet.sandboxes.get(sandboxId),
}

testSeed('opencomputer/sandbox', sandboxPrograms(world))
testSeed('opencomputer/exec', execPrograms(world))
testSeed('opencomputer/files', filesPrograms(world))
testSeed('opencomputer/pty', ptyPrograms(world))
testSeed('opencomputer/agent', agentPrograms(world))
