import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from './route.ts'

export function terminalRoutes(_deps: ApiDeps) {
  const notYet = (): never => {
    throw new IsletError('not_supported')
  }
  return {
    createTerminal: notYet,
    listTerminals: notYet,
    getTerminal: notYet,
    deleteTerminal: notYet,
    runTerminalCommand: notYet,
    listTerminalCommands: notYet,
    getTerminalCommand: notYet,
  } satisfies Partial<Handlers>
}
