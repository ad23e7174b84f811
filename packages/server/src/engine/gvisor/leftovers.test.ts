import { leftovers } from '../suite/leftovers.ts'
import { whyNoGvisor } from './harness.ts'

await leftovers({
  title: 'what isolation gvisor leaves behind',
  module: new URL('./harness.ts', import.meta.url),
  open: 'openGvisor',
  record: 'runsc/stray_sandbox:stray.state',
  skip: await whyNoGvisor(),
})
