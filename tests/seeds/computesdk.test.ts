// The document of ComputeSDK's sandbox: every method, option, event, result and example, through `islet/computesdk`.
import { compute } from 'islet/computesdk'
import { startSuite } from '../support/suite.ts'
import { accessPrograms } from './computesdk/access.ts'
import { commandPrograms } from './computesdk/commands.ts'
import { testCompute } from './computesdk/compute.ts'
import { envPrograms } from './computesdk/env.ts'
import { filePrograms } from './computesdk/file.ts'
import { filesystemPrograms } from './computesdk/filesystem.ts'
import { infoPrograms } from './computesdk/info.ts'
import { overlayPrograms } from './computesdk/overlay.ts'
import { serverPrograms } from './computesdk/server.ts'
import { signalPrograms } from './computesdk/signals.ts'
import { terminalPrograms } from './computesdk/terminal.ts'
import { watcherPrograms } from './computesdk/watcher.ts'
import { PACKAGE, SERVER, type World } from './computesdk/world.ts'
import { testSeed } from './seeds.ts'

const { server, islet } = await startSuite()
process.env.ISLET_URL = server.url
process.env.ISLET_API_KEY = server.key

const sandbox = await compute.sandbox.create({ templateId: 'host' })
await sandbox.filesystem.writeFile('/app/package.json', PACKAGE)
await sandbox.filesystem.writeFile('/app/server.js', SERVER)
await sandbox.filesystem.writeFile('/usr/local/bin/python', '#!/bin/sh\nexec python3 "$@"\n')
await sandbox.runCommand('chmod +x /usr/local/bin/python')
const world: World = { server, islet, sandbox }

testSeed('computesdk/commands', commandPrograms(world))
testSeed('computesdk/info', infoPrograms(world))
testSeed('computesdk/filesystem', filesystemPrograms(world))
testSeed('computesdk/overlay', overlayPrograms(world))
testSeed('computesdk/terminal', terminalPrograms(world))
testSeed('computesdk/server', serverPrograms(world))
testSeed('computesdk/env', envPrograms(world))
testSeed('computesdk/file', filePrograms(world))
testSeed('computesdk/watcher', watcherPrograms(world))
testSeed('computesdk/signals', signalPrograms(world))
testSeed('computesdk/access', accessPrograms(world))
testCompute(world)
