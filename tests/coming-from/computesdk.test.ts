// Checks docs/coming-from/computesdk.md row by row, through our SDK.
import { startSuite } from '../support/suite.ts'
import { accessRows } from './computesdk/access.ts'
import { envRows } from './computesdk/env.ts'
import { fileRows } from './computesdk/files.ts'
import { overlayRows } from './computesdk/overlays.ts'
import { sandboxRows } from './computesdk/sandbox.ts'
import { serverRows } from './computesdk/servers.ts'
import { signalRows } from './computesdk/signals.ts'
import { terminalRows } from './computesdk/terminals.ts'
import { watcherRows } from './computesdk/watchers.ts'
import { testRows } from './rows.ts'

const suite = await startSuite()
const sandbox = await suite.create({ metadata: { purpose: 'test' } })

testRows('computesdk.md', {
  ...sandboxRows(sandbox),
  ...fileRows(sandbox),
  ...overlayRows(sandbox),
  ...terminalRows(sandbox),
  ...serverRows(sandbox),
  ...envRows(sandbox),
  ...watcherRows(sandbox),
  ...signalRows(sandbox),
  ...accessRows(suite, sandbox),
})
