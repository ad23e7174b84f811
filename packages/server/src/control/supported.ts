// An option that this server cannot fulfil is refused, never ignored.
import { type CreateSandboxParsed, IsletError } from '@islet/contract'
import type { Capability, EngineCapabilities } from '../engine/engine.ts'

type Asked = Pick<
  CreateSandboxParsed,
  'resources' | 'network' | 'runtime' | 'user' | 'dependencies' | 'packages' | 'pip'
>

export function assertSupported(asked: Asked, can: EngineCapabilities): void {
  const needs: [string, boolean, Capability][] = [
    ['resources.memory', asked.resources?.memory !== undefined, can.memoryLimit],
    ['resources.cpu', asked.resources?.cpu !== undefined, can.cpuLimit],
    ['resources.pids', asked.resources?.pids !== undefined, can.pidsLimit],
    ['resources.disk', asked.resources?.disk !== undefined, can.diskLimit],
    ['network', asked.network?.enabled !== undefined, can.network],
    ['user', asked.user !== undefined, can.users],
    ['dependencies', (asked.dependencies ?? []).length > 0, can.wall],
    ['packages', (asked.packages ?? []).length > 0, can.wall],
    ['pip', (asked.pip ?? []).length > 0, can.wall],
    ['runtime', asked.runtime !== undefined && asked.runtime !== 'host', can.wall],
  ]
  for (const [option, wanted, capability] of needs) {
    if (!wanted || capability === true) continue
    throw new IsletError('not_supported', `${option}: ${capability.missing}`, {
      hint: `Leave ${option} out, or use an engine that can do it.`,
    })
  }
}
