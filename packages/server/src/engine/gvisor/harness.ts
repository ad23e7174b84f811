// The instance of oci/harness.ts, with gVisor.
import { openWall } from '../oci/harness.ts'
import { probeOci } from '../oci/probe.ts'
import { cellOptions, findProgram } from '../oci/runtime.ts'
import type { WallOptions } from '../oci/wall.ts'
import type { Harness } from '../suite/harness.ts'
import { GvisorEngine } from './gvisor.ts'

export function openGvisor(options: Partial<WallOptions> = {}): Promise<Harness> {
  return openWall(
    (parts) => new GvisorEngine(parts),
    (runDir) => cellOptions('runsc', runDir),
    options,
  )
}

/** Why this machine cannot run gVisor; undefined if it can. */
export async function whyNoGvisor(): Promise<string | undefined> {
  const problems = (await probeOci()).filter((finding) => !finding.ok && !finding.optional)
  if (problems.length > 0) return problems.map(({ detail }) => detail).join(' ')
  if (!findProgram('runsc')) return 'runsc is not installed; islet setup --gvisor installs it.'
}
