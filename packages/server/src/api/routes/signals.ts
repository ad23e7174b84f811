import type { SignalStatus } from '@islet/contract'
import { ownSandbox } from '../http/caller.ts'
import type { ApiDeps, Call, Handlers } from '../route.ts'

export function signalRoutes({ signals }: ApiDeps) {
  return {
    emitSignal: ({ params, body }) => signals.emitFor(params.id, body),
    signalStatus: (call) => statusOf(call),
    startSignals: async (call) => {
      await signals.start(call.params.id)
      return statusOf(call)
    },
    stopSignals: (call) => {
      signals.stop(call.params.id)
      return statusOf(call)
    },
    emitSignalInside: async ({ caller, body }) => {
      const sandboxId = ownSandbox(caller)
      if (caller?.kind === 'inside') signals.emitFromInside(sandboxId, body)
      else await signals.emitFor(sandboxId, body)
    },
  } satisfies Partial<Handlers>

  function statusOf({ params, headers }: Pick<Call<'signalStatus'>, 'params' | 'headers'>): SignalStatus {
    const channel = `/v1/sandboxes/${params.id}/signals`
    const scheme = headers['x-forwarded-proto'] === 'https' ? 'wss' : 'ws'
    return {
      status: signals.status(params.id),
      channel,
      wsUrl: `${scheme}://${headers.host ?? 'localhost'}${channel}`,
    }
  }
}
