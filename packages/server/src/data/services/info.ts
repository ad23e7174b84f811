import type { ServiceInfo } from '@islet/contract'
import type { ServiceRecord } from '../../db/services.ts'

export function toServiceInfo({ sandboxId, name, spec, state, ...times }: ServiceRecord): ServiceInfo {
  const { status, path, reason, processId, restartCount, healthy, healthStatus, url, pid } = state
  return {
    name,
    sandboxId,
    start: spec.start,
    ...given({ install: spec.install, originalPath: spec.path, envFile: spec.envFile }),
    path,
    environment: spec.environment ?? {},
    status,
    ...given({ port: state.port ?? state.assignedPort, url, reason, pid, processId, healthy, healthStatus }),
    autostart: spec.autostart ?? true,
    keepAwake: spec.keepAwake ?? false,
    restartPolicy: spec.restartPolicy ?? 'never',
    maxRestarts: spec.maxRestarts ?? 0,
    restartCount,
    createdAt: new Date(times.createdAt).toISOString(),
    updatedAt: new Date(times.updatedAt).toISOString(),
  }
}

/** Without what is not there. */
function given<T extends object>(values: T): { [Key in keyof T]?: NonNullable<T[Key]> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined && value !== null)
  return Object.fromEntries(entries) as { [Key in keyof T]?: NonNullable<T[Key]> }
}
