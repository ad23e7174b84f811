import { signalNumber } from '../../lib/signal-numbers.ts'
import { execLines } from '../http/exec-lines.ts'
import type { ApiDeps, Handlers } from '../route.ts'

const SIGKILL = 9

export function processRoutes({ processes }: ApiDeps) {
  return {
    exec: async ({ params, body, signal, autoResumed }) => {
      if (!body.stream) return { ...(await processes.exec(params.id, body, { signal })), autoResumed }
      const command = await processes.commands.stream(params.id, body, { signal })
      return execLines(command, { sandboxId: params.id, autoResumed, encoding: body.encoding })
    },
    startProcess: async ({ params, body, autoResumed }) => ({
      ...(await processes.start(params.id, body)),
      autoResumed,
    }),
    listProcesses: ({ params, query }) => ({
      processes: processes.list(params.id, query),
      total: processes.count(params.id, query),
    }),
    getProcess: ({ params, query, signal, hold }) => {
      if (query.wait) hold(params.id)
      return processes.get(params.id, params.pid, query.wait ? { waitMs: query.wait, signal } : {})
    },
    killProcess: ({ params }) => processes.kill(params.id, params.pid),
    signalProcess: ({ params, body }) => {
      const signal = body.signal === undefined ? SIGKILL : signalNumber(body.signal)
      return processes.signal(params.id, params.pid, signal, { group: body.group ?? true })
    },
    writeStdin: ({ params, body }) => {
      const bytes = Buffer.from(body.data ?? '', body.encoding ?? 'utf8')
      return processes.writeStdin(params.id, params.pid, bytes, { end: body.end ?? false })
    },
    resizeTerminal: ({ params, body }) => processes.resize(params.id, params.pid, body),
    processOutput: ({ params, query }) => processes.output(params.id, params.pid, query),
  } satisfies Partial<Handlers>
}
