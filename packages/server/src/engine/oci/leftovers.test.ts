import { leftovers } from '../suite/leftovers.ts'
import { probeOci } from './probe.ts'

const problems = (await probeOci()).filter((finding) => !finding.ok && !finding.optional)
await leftovers({
  title: 'what engine oci leaves behind',
  module: new URL('./harness.ts', import.meta.url),
  open: 'openOci',
  record: 'runc/stray',
  skip: problems.map(({ detail }) => detail).join(' ') || undefined,
})
