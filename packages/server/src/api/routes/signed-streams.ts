// Signed URLs of what a sandbox prints and of its history: each is read by anyone who has it, until it expires.
import { DEFAULTS, IsletError, OUTPUT_OFFSET, type SandboxEvent } from '@islet/contract'
import { granted, signedUrl } from '../http/signed-url.ts'
import { type ApiDeps, Bytes, type Handlers } from '../route.ts'
import { followEvents } from './events.ts'

const OUTPUT_HEADERS = { 'Content-Type': 'application/octet-stream', 'X-Accel-Buffering': 'no' }
const EVENT_HEADERS = { 'Content-Type': 'application/x-ndjson', 'X-Accel-Buffering': 'no' }

export function signedStreamRoutes(deps: ApiDeps, { draining }: { draining: AbortSignal }) {
  const { fleet, processes, tokens } = deps
  return {
    signOutput: async ({ params, body, headers, caller }) => {
      const { channel = 'combined', expiresIn: lifetimeMs = DEFAULTS.streamUrlMs } = body
      const { id: processId } = await processes.get(params.id, params.pid)
      const grant = { sandboxId: params.id, processId, channel }
      const signing = { kind: 'output', grant, lifetimeMs, path: '/v1/signed-output' } as const
      return { ...signedUrl(deps, signing, { headers, caller }), channel }
    },
    readSignedOutput: async (call) => {
      const renewal = '/v1/sandboxes/{id}/processes/{pid}/output/sign'
      const grant = await granted(tokens, 'output', call, renewal)
      if (call.isHead) {
        await processes.get(grant.sandboxId, grant.processId)
        return new Bytes(undefined, OUTPUT_HEADERS)
      }
      const { offset, body } = await processes.readers.read({
        ...grant,
        offset: call.query.offset ?? 0,
        signal: AbortSignal.any([call.signal, draining]),
      })
      return new Bytes(body, { ...OUTPUT_HEADERS, [OUTPUT_OFFSET]: offset })
    },
    signEvents: ({ params, body, headers, caller }) => {
      const { expiresIn: lifetimeMs = DEFAULTS.streamUrlMs } = body
      const grant = { sandboxId: fleet.record(params.id).id }
      return signedUrl(
        deps,
        { kind: 'events', grant, lifetimeMs, path: '/v1/signed-events' },
        { headers, caller },
      )
    },
    readSignedEvents: async (call) => {
      const renewal = '/v1/sandboxes/{id}/events/sign'
      const { sandboxId } = await granted(tokens, 'events', call, renewal)
      fleet.record(sandboxId)
      if (call.isHead) return new Bytes(undefined, EVENT_HEADERS)
      const events = followEvents(fleet, sandboxId, call.query, AbortSignal.any([call.signal, draining]))
      return new Bytes(lines(events, draining), EVENT_HEADERS)
    },
  } satisfies Partial<Handlers>
}

/** An empty line keeps the connection alive. */
async function* lines(
  events: AsyncIterable<SandboxEvent | undefined>,
  draining: AbortSignal,
): AsyncGenerator<Buffer> {
  for await (const event of events) yield Buffer.from(event ? `${JSON.stringify(event)}\n` : '\n')
  // A reader that is cut off must not take what it has for all.
  if (draining.aborted) throw new IsletError('draining')
}
