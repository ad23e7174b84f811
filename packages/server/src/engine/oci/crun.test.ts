import { describe, it } from 'node:test'
import { sweepDeadInstances } from '../../instance.ts'
import { engineSuite } from '../engine.suite.ts'
import { openOci } from './harness.ts'
import { ociCapabilities } from './oci.ts'
import { probeOci } from './probe.ts'
import { findProgram } from './runtime.ts'

const problems = (await probeOci()).flatMap((finding) =>
  finding.ok || finding.optional ? [] : [finding.detail],
)
if (!findProgram('crun')) problems.push('crun is not installed.')
if (problems.length > 0) {
  describe('engine oci with crun', () => it('runs', { skip: problems.join(' ') }))
} else {
  await sweepDeadInstances()
  engineSuite(
    ociCapabilities({ quota: false }),
    () => openOci({ runtime: 'crun' }),
    async (nameserver, allowRanges) => {
      const harness = await openOci({ runtime: 'crun', nameservers: [{ address: nameserver }], allowRanges })
      await harness.engine.start(new Map())
      return harness
    },
  )
}
