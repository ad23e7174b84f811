import { describe, it } from 'node:test'
import { sweepDeadInstances } from '../../instance.ts'
import { engineSuite } from '../engine.suite.ts'
import { gvisorCapabilities } from './gvisor.ts'
import { openGvisor, whyNoGvisor } from './harness.ts'

const skip = await whyNoGvisor()
if (skip) {
  describe('engine oci with isolation gvisor', () => it('runs', { skip }))
} else {
  await sweepDeadInstances()
  engineSuite(gvisorCapabilities({ quota: false }), openGvisor, async (nameserver, allowRanges) => {
    const harness = await openGvisor({ nameservers: [{ address: nameserver }], allowRanges })
    await harness.engine.start(new Map())
    return harness
  })
}
