// The name by which a caller reaches this server, and the URLs that lead to it.
import type { IncomingHttpHeaders } from 'node:http'
import { hostName } from '../../config/loopback.ts'
import type { SandboxView } from '../../control/record.ts'
import type { Previews } from '../../preview/previews.ts'

export function via({ host }: Pick<IncomingHttpHeaders, 'host'>): { via?: string } {
  return host ? { via: hostName(host) } : {}
}

/** Adds the URL of the sandbox's port. */
export function urlAdder(previews: Pick<Previews, 'urlAt'>) {
  return <View extends SandboxView>(
    sandbox: View,
    headers: IncomingHttpHeaders,
  ): View & { url: string | null } => {
    const url = previews.urlAt(sandbox.id, sandbox.network.port, via(headers))
    return { ...sandbox, url }
  }
}
