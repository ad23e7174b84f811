import type { Seed } from '../seeds.ts'

const CREATE =
  'a sandbox is created with a template, variables, metadata and limits, by the key and URL that are given'
const DEFAULTS =
  'without options a sandbox runs base, with 300 seconds of idle time, at the server of the environment'
const CONNECT = 'connect gives another handle of a sandbox'
const FROM_CHECKPOINT = 'a sandbox is created from a checkpoint, with an idle timeout of 300 seconds'
const PATCHES = 'patches of a checkpoint are created, listed and deleted, and run in sandboxes made from it'
const WAKE = 'a hibernated sandbox wakes, with 300 seconds of idle time or those that are given'
const CHECKPOINTS = 'checkpoints are created, listed, restored in place and deleted'
const PREVIEWS = 'preview URLs lead to a port, ask for a token if they are told to, are listed and deleted'
const PROPERTIES = 'a sandbox has its id, its status and its parts'
const RUN = 'exec.run gives output and exit code, with variables and a directory'
const RUN_TIMEOUT = 'exec.run kills the command after 60 seconds, or those that are given'
const START =
  'exec.start runs a program with arguments, variables and a directory, and gives its output as it comes'
const START_LIMITS = 'exec.start ends a command after its timeout, or some seconds after its client has left'
const ATTACH = 'exec.attach gives what was printed before, then what comes'
const SESSIONS = 'exec sessions are listed, and killed by signal 9 or another'
const SESSION = 'a session takes text and bytes on stdin, is killed, and is closed without ending the command'
const READ = 'files are written from text and bytes, and read as both'
const LIST = 'directories are made with their parents and listed, by default the root'
const REMOVE = 'files and directories are removed, and exists tells without throwing'
const PTY = 'a terminal has 80 columns and 24 rows, or those that are given, and gives its output'
const PTY_SESSION = 'a terminal takes text and bytes, and ends when it is closed'
const AGENT_START =
  'an agent starts with a prompt and its configuration, and reports events, errors and its end'
const AGENT_ATTACH = 'an agent session is attached to by its id, with what was reported before, and listed'
const AGENT_SESSION = 'a session takes prompts, an interrupt and a configuration, is closed and is killed'

export const opencomputer: Seed = {
  sandbox: [
    ['Sandbox.create', DEFAULTS],
    ['create: template', CREATE],
    ['create: timeout', DEFAULTS],
    ['create: apiKey', CREATE],
    ['create: apiUrl', CREATE],
    ['create: envs', CREATE],
    ['create: metadata', CREATE],
    ['create: cpuCount', 'more than 4 CPUs or 2048 MB are refused'],
    ['create: memoryMB', 'more than 4 CPUs or 2048 MB are refused'],
    ['Sandbox.connect', CONNECT],
    ['connect: sandboxId', CONNECT],
    ['connect: apiKey', CONNECT],
    ['connect: apiUrl', CONNECT],
    ['Sandbox.createFromCheckpoint', FROM_CHECKPOINT],
    ['createFromCheckpoint: checkpointId', FROM_CHECKPOINT],
    ['createFromCheckpoint: timeout', FROM_CHECKPOINT],
    ['createFromCheckpoint: apiKey', FROM_CHECKPOINT],
    ['createFromCheckpoint: apiUrl', FROM_CHECKPOINT],
    ['Sandbox.createCheckpointPatch', PATCHES],
    ['createCheckpointPatch: checkpointId', PATCHES],
    ['createCheckpointPatch: script', PATCHES],
    ['createCheckpointPatch: description', PATCHES],
    ['createCheckpointPatch: apiKey', PATCHES],
    ['createCheckpointPatch: apiUrl', PATCHES],
    ['Sandbox.listCheckpointPatches', PATCHES],
    ['Sandbox.deleteCheckpointPatch', PATCHES],
    ['kill', 'a killed sandbox is stopped and does not run'],
    ['isRunning', 'a killed sandbox is stopped and does not run'],
    ['hibernate', WAKE],
    ['wake', WAKE],
    ['wake: timeout', WAKE],
    ['setTimeout', 'setTimeout changes the idle timeout, in seconds'],
    ['setTimeout: timeout', 'setTimeout changes the idle timeout, in seconds'],
    ['createCheckpoint', CHECKPOINTS],
    ['listCheckpoints', CHECKPOINTS],
    ['restoreCheckpoint', CHECKPOINTS],
    ['deleteCheckpoint', CHECKPOINTS],
    ['createPreviewURL', PREVIEWS],
    ['createPreviewURL: port', PREVIEWS],
    ['createPreviewURL: domain', 'a preview URL has the domain that is given'],
    ['createPreviewURL: authConfig', PREVIEWS],
    ['listPreviewURLs', PREVIEWS],
    ['deletePreviewURL', PREVIEWS],
    ['sandboxId', PROPERTIES],
    ['status', PROPERTIES],
    ['agent', PROPERTIES],
    ['exec', PROPERTIES],
    ['files', PROPERTIES],
    ['pty', PROPERTIES],
    ['commands', PROPERTIES],
    ['type SandboxOpts', CREATE],
    ['type CheckpointInfo', CHECKPOINTS],
    ['type PatchInfo', PATCHES],
    ['type PatchResult', PATCHES],
    ['type PreviewURLResult', PREVIEWS],
  ],
  agent: [
    ['agent.start', AGENT_START],
    ['start: prompt', AGENT_START],
    ['start: model', AGENT_START],
    ['start: systemPrompt', AGENT_START],
    ['start: allowedTools', AGENT_START],
    ['start: permissionMode', AGENT_START],
    ['start: maxTurns', AGENT_START],
    ['start: cwd', AGENT_START],
    ['start: mcpServers', AGENT_START],
    ['start: resume', AGENT_START],
    ['start: onEvent', AGENT_START],
    ['start: onError', AGENT_START],
    ['start: onExit', AGENT_START],
    ['start: onScrollbackEnd', AGENT_START],
    ['agent.attach', AGENT_ATTACH],
    ['agent.list', AGENT_ATTACH],
    ['AgentSession.sessionId', AGENT_SESSION],
    ['AgentSession.done', AGENT_SESSION],
    ['AgentSession.sendPrompt', AGENT_SESSION],
    ['AgentSession.interrupt', AGENT_SESSION],
    ['AgentSession.configure', AGENT_SESSION],
    ['AgentSession.kill', AGENT_SESSION],
    ['AgentSession.close', AGENT_SESSION],
    ['type AgentEvent', AGENT_START],
    ['type McpServerConfig', AGENT_START],
  ],
  exec: [
    ['exec.run', RUN],
    ['run: command', RUN],
    ['run: timeout', RUN_TIMEOUT],
    ['run: env', RUN],
    ['run: cwd', RUN],
    ['exec.start', START],
    ['start: command', START],
    ['start: args', START],
    ['start: env', START],
    ['start: cwd', START],
    ['start: timeout', START_LIMITS],
    ['start: maxRunAfterDisconnect', START_LIMITS],
    ['start: onStdout', START],
    ['start: onStderr', START],
    ['start: onExit', START],
    ['exec.attach', ATTACH],
    ['attach: sessionId', ATTACH],
    ['attach: onStdout', ATTACH],
    ['attach: onStderr', ATTACH],
    ['attach: onExit', ATTACH],
    ['attach: onScrollbackEnd', ATTACH],
    ['exec.list', SESSIONS],
    ['exec.kill', SESSIONS],
    ['ExecSession.sessionId', SESSION],
    ['ExecSession.done', SESSION],
    ['ExecSession.sendStdin', SESSION],
    ['ExecSession.kill', SESSION],
    ['ExecSession.close', SESSION],
    ['type ProcessResult', RUN],
    ['type ExecSessionInfo', SESSIONS],
  ],
  files: [
    ['files.read', READ],
    ['files.readBytes', READ],
    ['files.write', READ],
    ['files.list', LIST],
    ['files.makeDir', LIST],
    ['files.remove', REMOVE],
    ['files.exists', REMOVE],
    ['type EntryInfo', LIST],
  ],
  pty: [
    ['pty.create', PTY],
    ['create: cols', PTY],
    ['create: rows', PTY],
    ['create: onOutput', PTY],
    ['PtySession.sessionId', PTY_SESSION],
    ['PtySession.send', PTY_SESSION],
    ['PtySession.close', PTY_SESSION],
  ],
}
