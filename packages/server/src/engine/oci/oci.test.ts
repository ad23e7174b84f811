import { describe, it } from 'node:test'
import { sweepDeadInstances } from '../../instance.ts'
import { engineSuite } from '../engine.suite.ts'
import { openOci } from './harness.ts'
import { ociCapabilities } from './oci.ts'
import { probeOci } from './probe.ts'

const problems = (await probeOci()).filter((finding) => !finding.ok && !finding.optional)
if (problems.length > 0) {
  describe('engine oci', () => it('runs', { skip: problems.map(({ detail }) => detail).join(' ') }))
} else {
  await sweepDeadInstances()
  engineSuite(ociCapabilities({ quota: false }), openOci, async (nameserver, allowRanges) => {
    const harness = await openOci({ nameservers: [{ address: nameserver }], allowRanges })
    await harness.engine.start(new Map())
    return harness
  })
}
