import { z } from 'zod'
import { idPattern } from '../ids.ts'
import { env, keepAwake, processId, queryInteger, sandboxPath, timestamp, userName } from './common.ts'
import { keepOutput, outcome, shellText, terminalSize, timeout } from './process.ts'

export const terminalId = z.string().regex(idPattern('terminal'), 'not a terminal id')

export const createTerminal = z
  .strictObject({
    pty: z.boolean().optional().meta({
      description: 'true: an interactive shell. false: commands, each with its result. Default: false.',
    }),
    shell: sandboxPath
      .optional()
      .meta({ description: "The program of a pty. Default: the user's login shell." }),
    cols: terminalSize.shape.cols.optional().meta({ description: 'Default: 80.' }),
    rows: terminalSize.shape.rows.optional().meta({ description: 'Default: 24.' }),
    encoding: z
      .enum(['raw', 'base64'])
      .optional()
      .meta({ description: 'The encoding of output: raw (text) or base64. Default: raw.' }),
    cwd: sandboxPath.optional(),
    env: env.optional(),
    user: userName.optional(),
    keepOutput: keepOutput.optional().meta({ description: 'How much of the output of a pty is kept.' }),
    keepAwake: keepAwake.optional().meta({
      description:
        'The sandbox is not idle while the shell of a pty runs, also without clients. Default: false.',
    }),
  })
  .refine(
    (input) =>
      input.pty || (!input.shell && !input.cols && !input.rows && !input.keepAwake && !input.keepOutput),
    {
      message: 'shell, cols, rows, keepAwake and keepOutput need pty',
    },
  )
export type CreateTerminal = z.input<typeof createTerminal>
export type CreateTerminalParsed = z.output<typeof createTerminal>

export const terminalInfo = z.object({
  id: terminalId,
  sandboxId: z.string(),
  pty: z.boolean(),
  status: z.enum(['running', 'ready', 'stopped']).meta({
    description: 'A pty is running until its shell ends; a terminal for commands is ready.',
  }),
  encoding: z.enum(['raw', 'base64']),
  processId: processId.nullable().meta({ description: 'The process of the shell of a pty, to attach to.' }),
  channel: z.string().nullable().meta({ description: 'The path of the WebSocket of a pty.' }),
  keepAwake: keepAwake.meta({
    description: 'Whether its shell keeps the sandbox awake, also without clients.',
  }),
  createdAt: timestamp,
})
export type TerminalInfo = z.infer<typeof terminalInfo>
export const terminalList = z.object({ terminals: z.array(terminalInfo) })

export const runTerminalCommand = z.strictObject({
  command: shellText,
  keepOutput: keepOutput.optional(),
  background: z.boolean().optional().meta({ description: 'Answer at once. Default: false.' }),
  cwd: sandboxPath.optional(),
  env: env.optional(),
  timeout: timeout.optional().meta({
    description:
      'Kills the whole command after this long; 0: never. Default: the execution timeout of the sandbox, also in the background.',
  }),
})
export type RunTerminalCommand = z.input<typeof runTerminalCommand>
export type RunTerminalCommandParsed = z.output<typeof runTerminalCommand>

export const terminalCommand = z.object({
  id: processId,
  terminalId,
  command: z.string(),
  status: z.enum(['running', 'completed', 'failed']).meta({ description: 'completed: exit code 0.' }),
  outcome: outcome.nullable().meta({ description: 'As of a process; null while it runs.' }),
  stdout: z.string().meta({ description: 'In the encoding of the terminal, like stderr.' }),
  stderr: z.string(),
  truncated: z.boolean().meta({ description: 'True if only the end of the output is given.' }),
  droppedBytes: z.number().meta({ description: 'Bytes that were printed before the given output.' }),
  exitCode: z.number().nullable(),
  durationMs: z.number().nullable(),
  startedAt: timestamp,
  finishedAt: timestamp.nullable(),
})
export type TerminalCommandInfo = z.infer<typeof terminalCommand>
export const terminalCommandList = z.object({ commands: z.array(terminalCommand) })
export const getTerminalCommand = z.strictObject({
  wait: queryInteger(0, 60_000)
    .optional()
    .meta({ description: 'Wait up to this many milliseconds for the end of the command.' }),
})
