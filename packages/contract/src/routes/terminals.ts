import { LIMITS } from '../limits.ts'
import * as terminal from '../schemas/terminal.ts'
import { type Route, SANDBOX } from './route.ts'

const TERMINAL = `${SANDBOX}/terminals/{tid}` as const

export const terminalRoutes = {
  createTerminal: {
    method: 'POST',
    path: `${SANDBOX}/terminals`,
    summary: 'Open a terminal: an interactive shell, or a place for tracked commands',
    tag: 'terminals',
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
    tag: 'terminals',
    response: terminal.terminalList,
    status: 200,
  },
  getTerminal: {
    method: 'GET',
    path: TERMINAL,
    summary: 'One terminal',
    tag: 'terminals',
    response: terminal.terminalInfo,
    status: 200,
  },
  deleteTerminal: {
    method: 'DELETE',
    path: TERMINAL,
    summary: 'Close a terminal and kill what runs in it',
    tag: 'terminals',
    wakes: true,
    response: null,
    status: 204,
  },
  runTerminalCommand: {
    method: 'POST',
    path: `${TERMINAL}/commands`,
    summary: 'Run a command in a terminal without a pty',
    tag: 'terminals',
    wakes: true,
    body: terminal.runTerminalCommand,
    bodyBytes: LIMITS.commandBodyBytes,
    response: terminal.terminalCommand,
    status: 200,
  },
  listTerminalCommands: {
    method: 'GET',
    path: `${TERMINAL}/commands`,
    summary: 'The commands of a terminal, oldest first',
    tag: 'terminals',
    response: terminal.terminalCommandList,
    status: 200,
  },
  getTerminalCommand: {
    method: 'GET',
    path: `${TERMINAL}/commands/{pid}`,
    summary: 'One command; may wait for its end',
    tag: 'terminals',
    query: terminal.getTerminalCommand,
    response: terminal.terminalCommand,
    status: 200,
  },
} as const satisfies Record<string, Route>
