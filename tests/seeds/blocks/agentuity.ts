import { type Seed, tested } from '../seeds.ts'

const OPTIONS = 'create takes every option of the reference'
const LIFE = 'a sandbox shows its states, and a gone one its record'
const EXECUTION = 'an execution shows how it ended'
const SNAPSHOTS = 'snapshots are listed, tagged and deleted'
const FAILURES = 'each failure path can be told by what the reference names'

export const agentuity: Seed = {
  client: [
    ['a client with a key', 'a client takes its key from the option or from a variable'],
    ['workflow: one bounded command', 'one command runs in a sandbox of its own'],
    ['workflow: several commands', 'several commands share files'],
    ['workflow: a daemon', 'a job goes on, is listed and stopped'],
    ['workflow: a workspace', 'a sandbox is paused and resumed, and a command resumes it by itself'],
    ['workflow: repeatable environments', 'a snapshot is the base of a new sandbox'],
    ['list the runtimes', 'runtimes are listed by name'],
    ['run one command', 'one command runs in a sandbox of its own'],
    ['run with files', 'files are written before the command'],
    ['run with streams', 'output is piped to writable streams as it comes'],
  ],
  sandbox: [
    ['an interactive sandbox', 'several commands share files'],
    ['files: make, write, list, read', 'files are made, listed, read and removed'],
    ['files: remove', 'files are made, listed, read and removed'],
    ['output by URL', 'output is fetched from its URLs'],
    ['output by pipe', 'execute pipes output'],
    ['run with env', 'variables are passed, changed and deleted'],
    ['setEnv', 'variables are passed, changed and deleted'],
    ['a port', 'a port has a URL'],
    ['a project', 'sandboxes are found by their project'],
    ['cancel', 'an aborted command is killed, and an aborted run leaves no sandbox'],
    ['list idle sandboxes', 'sandboxes are listed by status, a page at a time'],
    ['get and connect', 'a sandbox is found again by its id'],
    ['jobs', 'a job goes on, is listed and stopped'],
    ['surface: sandbox', LIFE],
    ['surface: execution', EXECUTION],
    ['surface: job', 'a job goes on, is listed and stopped'],
    ['failure: a runtime name', FAILURES],
    ['failure: no output', FAILURES],
    ['failure: a sandbox disappears', FAILURES],
    ['failure: a server is not ready', FAILURES],
    ['failure: exit code 0', FAILURES],
    ['pause and resume', 'a sandbox is paused and resumed, and a command resumes it by itself'],
    ['a paused timeout', 'a paused timeout says when the sandbox ends'],
  ],
  saved: [
    ['disk checkpoints', 'a disk checkpoint is restored and deleted'],
    ['a snapshot and a sandbox from it', 'a snapshot is the base of a new sandbox'],
    ['manage snapshots', SNAPSHOTS],
    ['lineage', 'the lineage leads from a snapshot to its parent'],
    ['a snapshot without a runtime', 'a snapshot and a runtime are not given together'],
    ['events', 'the history is listed in order'],
    ['Hono', 'a Hono app has the client as a variable'],
    ['reference: createSnapshot', SNAPSHOTS],
    ['reference: getSnapshot', SNAPSHOTS],
    ['reference: listSnapshots', SNAPSHOTS],
    ['reference: tagSnapshot', SNAPSHOTS],
    ['reference: deleteSnapshot', SNAPSHOTS],
    ['reference: getSnapshotLineage', 'the lineage leads from a snapshot to its parent'],
  ],
  reference: [
    ...tested('the client takes every option', ...named('client', 'apiKey', 'url', 'orgId', 'logger')),
    ...tested(
      OPTIONS,
      ...named('create', 'runtime', 'runtimeId', 'name', 'description', 'resources.memory', 'resources.cpu'),
      ...named('create', 'resources.disk', 'network.enabled', 'network.port', 'projectId', 'timeout.idle'),
      ...named('create', 'timeout.execution', 'timeout.paused', 'env', 'files', 'metadata'),
    ),
    ['create: dependencies', 'packages are installed at create'],
    ['create: packages', 'packages are installed at create'],
    ['create: snapshot', 'a snapshot id or tag is taken'],
    ['create: scopes', 'scopes give programs inside the store'],
    ['scopes', 'scopes give programs inside the store'],
    ...tested(
      'execute takes every option',
      ...named('execute', 'command', 'files', 'timeout', 'stream', 'pipe', 'signal'),
    ),
    ...tested(
      'an instance has every member',
      ...named(
        'instance',
        'id',
        'status',
        'execute',
        'writeFiles',
        'readFile',
        'listFiles',
        'mkDir',
        'rmFile',
      ),
      ...named('instance', 'rmDir', 'setEnv', 'get', 'pause', 'resume', 'destroy'),
    ),
    ...tested(
      'an execution has every field',
      ...named('execution', 'executionId', 'status', 'exitCode', 'durationMs', 'stdoutStreamUrl'),
      ...named('execution', 'stderrStreamUrl', 'outputTruncated', 'autoResumed'),
    ),
    ...tested(
      'the result of a run has every field',
      ...named('run result', 'sandboxId', 'exitCode', 'durationMs', 'stdout', 'stderr'),
    ),
  ],
}

function named(table: string, ...names: string[]): string[] {
  return names.map((name) => `${table}: ${name}`)
}
