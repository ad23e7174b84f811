import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import {
  byteLength,
  checkBase64,
  decodedBytes,
  durationMs,
  env,
  keepAwake,
  offset,
  pageLimit,
  processId,
  queryBoolean,
  queryInteger,
  sandboxPath,
  sizeBytes,
  timestamp,
  total,
  userName,
} from './common.ts'
import { filesToWrite, grantQuery, urlLifetime } from './file.ts'
import { PACKAGES_NEED_RUNTIME, packagesNeedRuntime } from './packages.ts'
import { progressOf } from './progress.ts'
import { ONE_BASE, oneBase, sandboxFields } from './sandbox.ts'

const argument = z
  .string()
  .refine(
    (text) => !text.includes('\0') && byteLength(text) <= LIMITS.argumentBytes,
    `an argument has at most ${LIMITS.argumentBytes} bytes and no NUL`,
  )
const fits = (argv: string[]): boolean =>
  argv.reduce((sum, text) => sum + byteLength(text), 0) <= LIMITS.commandBytes

/** For sh -c. */
export const shellText = argument.min(1, 'a command is not empty')

export const command = z
  .union([
    shellText,
    z
      .array(argument)
      .min(1, 'a command has at least its program')
      .max(LIMITS.argvEntries)
      .refine(fits, `a command has at most ${LIMITS.commandBytes} bytes`)
      .refine((argv) => argv[0] !== '', 'the program is not empty'),
  ])
  .meta({ description: 'Text runs through sh -c; a list is a program and its arguments.' })

export const timeout = durationMs.refine((value) => value <= LIMITS.timeoutMs, 'a timeout is at most 24h')
const STDIN_FITS = `stdin has at most ${LIMITS.stdinBytes} bytes; start a process and write to it for more`
/** Refuses text that is not valid base64, and more bytes than the limit, counted after decoding. */
function checkInput<Text extends string, Encoding extends string>(text: Text, encoding: Encoding) {
  const check = checkBase64(text, encoding)
  return (value: { [Key in Text | Encoding]?: unknown }, context: z.RefinementCtx): void => {
    check(value, context)
    if (decodedBytes(String(value[text] ?? ''), value[encoding]) <= LIMITS.stdinBytes) return
    context.addIssue({ code: 'custom', message: STDIN_FITS, path: [text], input: value[text] })
  }
}

export const keepOutput = sizeBytes
  .refine((bytes) => bytes >= LIMITS.keepOutputBytes, `at least ${LIMITS.keepOutputBytes} bytes are kept`)
  .meta({
    description:
      'How much of the end of the output is kept for later readers. At most the limit of the server. Default: the setting of the server, 16 MiB.',
  })

const commandFields = {
  command,
  cwd: sandboxPath.optional(),
  env: env.optional().meta({ description: 'Added to the environment of the sandbox.' }),
  user: userName.optional(),
  timeout: timeout
    .optional()
    .meta({ description: 'Kills the whole command after this time; 0 or absent: never.' }),
  keepOutput: keepOutput.optional(),
  files: filesToWrite.optional().meta({
    description:
      'Written before the command starts, by default with its user as their owner; paths may be relative to its directory. If one cannot be written, the command is not started; those before it stay.',
  }),
}
export const captureFields = {
  stdin: z
    .union([z.string(), z.literal(true)])
    .optional()
    .meta({
      description:
        'Text, at most 8 MiB, counted after decoding; or, with `stream`, true: it stays open for POST .../stdin.',
    }),
  stdinEncoding: z.enum(['utf8', 'base64']).optional(),
  stream: z.boolean().optional().meta({
    description:
      'Answer with lines of JSON while the command runs, without a limit. Each says its encoding: base64 if that is asked for or it is not UTF-8.',
  }),
  encoding: z
    .enum(['utf8', 'base64'])
    .optional()
    .meta({ description: 'The encoding of stdout and stderr in the answer. Default: utf8.' }),
  maxOutputBytes: z.number().int().min(0).max(LIMITS.execOutputBytes).optional().meta({
    description:
      'Limit of stdout and stderr together; the rest is cut and truncated is true. Default: 4 MiB.',
  }),
}

const checkStdin = checkInput('stdin', 'stdinEncoding')

function checkCapture(
  value: Pick<z.output<z.ZodObject<typeof captureFields>>, keyof typeof captureFields>,
  context: z.RefinementCtx,
): void {
  const { stdin, stdinEncoding, stream, maxOutputBytes } = value
  const refuse = (field: string, message: string, input: unknown) =>
    context.addIssue({ code: 'custom', message, path: [field], input })
  if (stream && maxOutputBytes !== undefined)
    refuse(
      'maxOutputBytes',
      'a streamed answer has no limit: leave it out, or leave stream out',
      maxOutputBytes,
    )
  if (stdin !== true) {
    checkStdin(value, context)
    return
  }
  if (!stream) refuse('stdin', 'true is for a streamed answer: send text, or set stream', stdin)
  if (stdinEncoding !== undefined) refuse('stdinEncoding', 'it is for stdin that is text', stdinEncoding)
}

export const exec = z.strictObject({ ...commandFields, ...captureFields }).superRefine(checkCapture)
export type Exec = z.input<typeof exec>
export type ExecParsed = z.output<typeof exec>

export const OUTCOMES = ['completed', 'failed', 'timeout', 'cancelled'] as const
/** How a process ended, in one word. */
export const outcome = z.enum(OUTCOMES).meta({
  description:
    'completed: exit code 0. timeout: it ran into its timeout. cancelled: killed on request. failed: any other end.',
})
export type Outcome = z.infer<typeof outcome>

/** The result of a command. A command that could not be started is an error instead. */
const resultFields = {
  exitCode: z.number().int().meta({ description: '128 + n when signal n ended it, 124 when it timed out.' }),
  signal: z.string().nullable().meta({ description: 'The signal that ended it, like SIGKILL.' }),
  timedOut: z.boolean(),
  oom: z
    .boolean()
    .meta({ description: 'The memory limit of the sandbox killed a process while this command ran.' }),
  durationMs: z.number(),
  hint: z.string().optional().meta({
    description: 'Why it may have failed, if the output shows it: the sandbox has no network.',
  }),
}
export const autoResumed = z
  .boolean()
  .meta({ description: 'The sandbox was suspended and was woken for this call.' })
export const execResult = z.object({
  processId,
  outcome,
  ...resultFields,
  autoResumed,
  stdout: z.string(),
  stderr: z.string(),
  truncated: z.boolean(),
  droppedBytes: z.number().meta({
    description:
      'Bytes that were printed but are not in this answer; the end of the output is kept with the process.',
  }),
})
export type ExecResult = z.infer<typeof execResult>
/** A result before it is known whether the sandbox was woken. */
export type CommandResult = Omit<ExecResult, 'autoResumed'>

// The sandbox is removed when the command ends. If the server dies first, the next start removes it.
const { keepAwake: _keepAwake, ...runSandboxFields } = sandboxFields
const { files: _files, ...runCommandFields } = commandFields
export const run = z
  .strictObject({ ...runSandboxFields, ...runCommandFields, ...captureFields })
  .superRefine(checkCapture)
  .refine(oneBase, ONE_BASE)
  .refine(packagesNeedRuntime, PACKAGES_NEED_RUNTIME)
export type Run = z.input<typeof run>
export type RunParsed = z.output<typeof run>
export const runResult = execResult.extend({ sandboxId: z.string() })
export type RunResult = z.infer<typeof runResult>
export const runProgress = progressOf('result', runResult)
export type RunProgress = z.infer<typeof runProgress>

/**
 * One line of an answer to exec or run with `stream`: first start, last exit or error. A line of output never ends inside a
 * character; what is not UTF-8 is base64.
 */
const outputLine = <Name extends 'stdout' | 'stderr'>(type: Name) =>
  z.object({
    type: z.literal(type),
    data: z.string(),
    encoding: z.literal('base64').optional().meta({ description: 'Absent: data is text.' }),
  })
const { stdout: _stdout, stderr: _stderr, ...exitFields } = execResult.shape
export const execLine = z.discriminatedUnion('type', [
  z.object({ type: z.literal('start'), sandboxId: z.string(), processId, autoResumed }),
  outputLine('stdout'),
  outputLine('stderr'),
  z.object({ type: z.literal('exit'), ...exitFields }),
  z.object({ type: z.literal('error'), error: z.object({ code: z.string(), message: z.string() }) }),
])
export type ExecLine = z.infer<typeof execLine>

export const terminalSize = z.strictObject({
  cols: z.number().int().min(1).max(LIMITS.terminalSide),
  rows: z.number().int().min(1).max(LIMITS.terminalSide),
})

/** The default program of a terminal, as `sh -c` text: the user's login shell. */
export const LOGIN_SHELL =
  'case $SHELL in */sh|*/ash|*/dash|*/nologin|*/false|"") ;; *) [ -x "$SHELL" ] && exec "$SHELL" -l ;; esac; ' +
  'command -v bash >/dev/null 2>&1 && exec bash -l; exec sh -l'

export const startProcess = z.strictObject({
  ...commandFields,
  stdin: z.boolean().optional().meta({
    description: 'Keep stdin open for writes. Default: false; the stdin of a terminal is always open.',
  }),
  hold: z.boolean().optional().meta({
    description:
      'Hold the output back until the first client attaches, for up to 10 s, so that the client misses nothing.',
  }),
  terminal: terminalSize.optional().meta({ description: 'Run in a terminal of this size.' }),
  keepAwake: keepAwake.optional().meta({
    description: 'The sandbox is not idle while the process runs. Default: true; false in a terminal.',
  }),
  maxRunAfterDisconnect: timeout.optional().meta({
    description:
      'Kill the process this long after the last attached client has left, unless one returns; 0: at once. Absent: it keeps running. A process that never had a client is not killed. A restart of the server starts the time again.',
  }),
})
export type StartProcess = z.input<typeof startProcess>
export type StartProcessParsed = z.output<typeof startProcess>

const PROCESS_STATUSES = ['running', 'exited', 'lost'] as const
export const PROCESS_KINDS = ['command', 'job', 'terminal', 'service'] as const
export const processKind = z.enum(PROCESS_KINDS).meta({
  description:
    'command: a client waits for its end. job: in the background. terminal: in a pty. service: of a service.',
})
export type ProcessKind = z.infer<typeof processKind>

export const processInfo = z.object({
  kind: processKind,
  id: processId,
  sandboxId: z.string(),
  command: z.union([z.string(), z.array(z.string())]),
  status: z.enum(PROCESS_STATUSES).meta({ description: 'lost: the sandbox ended before the process did.' }),
  outcome: outcome.nullable().meta({
    description:
      'completed: exit code 0. timeout: it ran into its timeout. cancelled: killed on request. failed: any other end, also lost. null: it has not ended.',
  }),
  reason: z.string().nullable().meta({ description: 'Why it was lost.' }),
  jobStatus: z.enum(['pending', 'running', 'completed', 'failed', 'cancelled']).meta({
    description:
      'As outcome, but failed after a timeout. pending: not started yet. running: it has not ended.',
  }),
  pid: z.number().nullable(),
  cwd: z.string(),
  user: z.string(),
  terminal: z.boolean(),
  terminalId: z.string().nullable().meta({ description: 'The terminal it belongs to.' }),
  service: z.string().nullable().meta({ description: 'The service it belongs to.' }),
  keepAwake: keepAwake.meta({ description: 'The sandbox is not idle while the process runs.' }),
  maxRunAfterDisconnectMs: z.number().nullable(),
  startedAt: timestamp,
  endedAt: timestamp.nullable(),
  outputBytes: z.number().meta({ description: 'Bytes printed so far; the end of them is kept.' }),
  keepOutputBytes: z.number().meta({ description: 'How many bytes of the output are kept at most.' }),
  result: z.object(resultFields).nullable(),
})
export type ProcessInfo = z.infer<typeof processInfo>
export const startedProcess = processInfo.extend({ autoResumed })
export type StartedProcess = z.infer<typeof startedProcess>
export const processList = z.object({ processes: z.array(processInfo), total })
export const listProcesses = z.strictObject({
  kind: processKind.optional().meta({ description: 'Default: all.' }),
  status: z
    .enum([...PROCESS_STATUSES, ...OUTCOMES])
    .optional()
    .meta({ description: 'A status or an outcome. Default: all.' }),
  limit: pageLimit,
  offset,
})
export type ListProcessesParsed = z.output<typeof listProcesses>
export const getProcess = z.strictObject({
  wait: queryInteger(0, 60_000)
    .optional()
    .meta({ description: 'Wait up to this many milliseconds for the end of the process.' }),
})

export const signalName = z.union([
  z.number().int().min(1).max(64),
  z.string().regex(/^(SIG)?[A-Z][A-Z0-9+-]{1,9}$/, 'not a signal'),
])
export const sendSignal = z.strictObject({
  signal: signalName.optional().meta({ description: 'A name or number. Default: SIGKILL.' }),
  group: z.boolean().optional().meta({
    description:
      'Signal its whole session and, with SIGKILL, everything else that it started. Default: true.',
  }),
})
export const resizeTerminal = terminalSize
export const writeStdin = z
  .strictObject({
    data: z.string().optional().meta({ description: 'At most 8 MiB, counted after decoding.' }),
    encoding: z.enum(['utf8', 'base64']).optional(),
    end: z.boolean().optional().meta({ description: 'Close stdin after the data.' }),
  })
  .superRefine(checkInput('data', 'encoding'))
export const getOutput = z.strictObject({
  encoding: z.enum(['utf8', 'base64']).optional(),
  maxBytes: queryInteger(0, LIMITS.execOutputBytes)
    .optional()
    .meta({ description: 'At most this many bytes of the end of the kept output. Default: 4 MiB.' }),
})
export type GetOutputParsed = z.output<typeof getOutput>
export const processOutput = z.object({
  stdout: z.string(),
  stderr: z.string(),
  truncated: z.boolean().meta({ description: 'True if the beginning of the output is missing.' }),
  droppedBytes: z.number().meta({ description: 'Bytes that were printed before the given output.' }),
  outputBytes: z.number(),
})
export type ProcessOutput = z.infer<typeof processOutput>

export const outputChannel = z.enum(['stdout', 'stderr', 'combined'])
export type OutputChannel = z.infer<typeof outputChannel>
export const signOutput = z.strictObject({
  channel: outputChannel
    .optional()
    .meta({ description: 'combined: both, in the order they came. Default: combined.' }),
  expiresIn: urlLifetime.optional().meta({ description: 'Milliseconds or like 30m. Default: 24 hours.' }),
})
export type SignOutput = z.input<typeof signOutput>
export const outputUrl = z.object({ url: z.string(), channel: outputChannel, expiresAt: timestamp })
export type OutputUrl = z.infer<typeof outputUrl>
export const signedOutput = grantQuery.extend({
  offset: queryInteger(0, Number.MAX_SAFE_INTEGER).optional().meta({
    description:
      'Begin at this byte of the channel: how many a reader whose connection broke has. Default: 0.',
  }),
})

/**
 * WS .../processes/{pid}/attach. Text frames are one of these; binary frames from the server are one byte of channel
 * (1 stdout or terminal, 2 stderr) and bytes of output; binary frames from the client are stdin.
 */
export const attachQuery = z.strictObject({
  replay: queryBoolean.optional().meta({ description: 'Send the kept output first. Default: true.' }),
})
export const attachServerMessage = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('start'),
    process: processInfo,
    truncated: z.boolean(),
    droppedBytes: z.number().meta({
      description:
        'Bytes that were printed before the output that follows. `start` is sent again if kept output was removed during the replay.',
    }),
  }),
  z.object({ type: z.literal('replay-end') }),
  z.object({ type: z.literal('exit'), outcome, ...resultFields }),
  z.object({ type: z.literal('error'), error: z.object({ code: z.string(), message: z.string() }) }),
])
export type AttachServerMessage = z.infer<typeof attachServerMessage>
export const attachClientMessage = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('resize'), cols: terminalSize.shape.cols, rows: terminalSize.shape.rows }),
  z.strictObject({ type: z.literal('signal'), signal: signalName }),
  z.strictObject({ type: z.literal('stdin-end') }),
])
