import { LIMITS } from '../limits.ts'
import * as terminal from '../schemas/terminal.ts'
import { SANDBOX, tagged } from './route.ts'

const TERMINAL = `${SANDBOX}/terminals/{tid}` as const

export const terminalRoutes = tagged('terminals', {
  createTerminal: {
    method: 'POST',
    path: `${SANDBOX}/terminals`,
    summary: 'Open a terminal: an interactive shell, or a group of commands whose results are kept',
    wakes: true,
    body: terminal.createTerminal,
    bodyBytes: LIMITS.commandBodyBytes,
    response: terminal.terminalInfo,
    status: 201,
  },
  listTerminals: {
    method: 'GET',
    path: `${SANDBOX}/terminals`,
    summary: 'List the open terminals',
    response: terminal.terminalList,
  },
  getTerminal: {
    method: 'GET',
    path: TERMINAL,
    summary: 'Get one terminal',
    response: terminal.terminalInfo,
  },
  deleteTerminal: {
    method: 'DELETE',
    path: TERMINAL,
    summary: 'Close a terminal and kill what runs in it',
    wakes: true,
    response: null,
  },
  runTerminalCommand: {
    method: 'POST',
    path: `${TERMINAL}/commands`,
    summary: 'Run a command in a terminal without a pty',
    wakes: true,
    body: terminal.runTerminalCommand,
    bodyBytes: LIMITS.commandBodyBytes,
    response: terminal.terminalCommand,
  },
  listTerminalCommands: {
    method: 'GET',
    path: `${TERMINAL}/commands`,
    summary: 'List the commands of a terminal, oldest first',
    response: terminal.terminalCommandList,
  },
  getTerminalCommand: {
    method: 'GET',
    path: `${TERMINAL}/commands/{pid}`,
    summary: 'Get one command; may wait for its end',
    query: terminal.getTerminalCommand,
    response: terminal.terminalCommand,
  },
})
