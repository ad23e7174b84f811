import type { ApiDeps, Handlers } from '../route.ts'

export function terminalRoutes({ terminals }: ApiDeps) {
  return {
    createTerminal: ({ params, body }) => terminals.create(params.id, body),
    listTerminals: ({ params }) => ({ terminals: terminals.list(params.id) }),
    getTerminal: ({ params }) => terminals.get(params.id, params.tid),
    deleteTerminal: ({ params }) => terminals.destroy(params.id, params.tid),
    runTerminalCommand: ({ params, body, signal }) =>
      terminals.run(params.id, params.tid, body, body.background ? {} : { signal }),
    listTerminalCommands: async ({ params }) => ({
      commands: await terminals.commands(params.id, params.tid),
    }),
    getTerminalCommand: ({ params, query, signal, hold }) => {
      if (query.wait) hold(params.id)
      const wait = query.wait ? { waitMs: query.wait, signal } : {}
      return terminals.command(params.id, params.tid, params.pid, wait)
    },
  } satisfies Partial<Handlers>
}
