import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import {
  byteLength,
  env,
  fewMembers,
  keepAwake,
  noNul,
  processId,
  queryInteger,
  sandboxPath,
  timestamp,
  userName,
} from './common.ts'
import { keepOutput, timeout } from './process.ts'

const text = (bytes: number) =>
  z
    .string()
    .min(1)
    .refine((value) => noNul(value) && byteLength(value) <= bytes, `it has at most ${bytes} bytes and no NUL`)

const prompt = text(LIMITS.agentTextBytes)
const resume = z
  .string()

  .regex(/^[A-Za-z0-9][A-Za-z0-9-]{0,127}$/, 'not the id of a conversation')
  .meta({ description: 'A conversation to continue: claude_session_id of an earlier turn in this sandbox.' })

export const PERMISSION_MODES = [
  'default',
  'acceptEdits',
  'bypassPermissions',
  'plan',
  'dontAsk',
  'auto',
] as const

export const mcpServer = z
  .union([
    z.strictObject({
      type: z.literal('stdio').optional(),
      command: text(LIMITS.pathBytes),
      args: z.array(text(LIMITS.envValueBytes)).max(LIMITS.agentListEntries).optional(),
      env: env.optional(),
    }),
    z.strictObject({
      type: z.enum(['http', 'sse']),
      url: z.url({ protocol: /^https?$/ }).max(2048),
      headers: env.optional(),
    }),
  ])
  .meta({ description: 'A program inside the sandbox, or a URL that the sandbox can reach.' })
export type McpServer = z.input<typeof mcpServer>

const configFields = {
  model: text(LIMITS.nameLength).optional().meta({ description: 'Default: the one of the Agent SDK.' }),
  systemPrompt: text(LIMITS.agentTextBytes)
    .optional()
    .meta({ description: 'Replaces the system prompt of Claude Code.' }),
  allowedTools: z.array(text(1024)).max(LIMITS.agentListEntries).optional().meta({
    description:
      'The only tools the agent has: names, or rules like Bash(git *). With it, bypassPermissions becomes dontAsk. Default: all.',
  }),
  permissionMode: z.enum(PERMISSION_MODES).optional().meta({
    description: 'As in the Agent SDK; nobody answers questions. Default: bypassPermissions.',
  }),
  maxTurns: z
    .number()
    .int()
    .min(1)
    .max(LIMITS.agentTurns)
    .optional()
    .meta({ description: 'How often the model may be asked for one prompt. Default: 50.' }),
  mcpServers: fewMembers(
    LIMITS.agentServers,
    z.record(z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'not the name of an MCP server'), mcpServer),
  ).optional(),
  resume: resume.optional(),
}

export const configureAgent = z.strictObject({ ...configFields, cwd: sandboxPath.optional() })
export type ConfigureAgent = z.input<typeof configureAgent>
export type ConfigureAgentParsed = z.output<typeof configureAgent>

export const startAgent = z.strictObject({
  ...configureAgent.shape,
  prompt: prompt.optional().meta({ description: 'The first prompt. Default: the session waits for one.' }),
  env: env
    .optional()
    .meta({ description: 'Added to the environment of the sandbox, which has the API key.' }),
  user: userName.optional(),
  timeout: timeout
    .optional()
    .meta({ description: 'Kills the whole session after this time. Default: never.' }),
  keepOutput: keepOutput.optional(),
  keepAwake: keepAwake
    .optional()
    .meta({ description: 'The sandbox is not idle while the session runs. Default: true.' }),
  maxRunAfterDisconnect: timeout
    .optional()
    .meta({ description: 'As for a process: kill it this long after its last client has left.' }),
})
export type StartAgent = z.input<typeof startAgent>
export type StartAgentParsed = z.output<typeof startAgent>

export const promptAgent = z.strictObject({ text: prompt, resume: resume.optional() })

export const agentSession = z.object({
  sessionId: processId.meta({
    description: 'The id of its process: attach to it, signal it, read its output.',
  }),
  sandboxId: z.string(),
  running: z.boolean(),
  startedAt: timestamp,
  endedAt: timestamp.nullable(),
  exitCode: z.number().int().nullable(),
  claudeSessionId: z
    .string()
    .nullable()
    .meta({ description: 'The conversation, for resume; null before its first turn.' }),
})
export type AgentSessionInfo = z.infer<typeof agentSession>
export const listAgents = z.strictObject({ limit: queryInteger(1, LIMITS.listPage).optional() })
export const agentList = z.object({ sessions: z.array(agentSession) })
