// Processes without attached clients: their output and exit code are complete whatever happened to the server.
import assert from 'node:assert/strict'
import type { ProcessInfo, ProcessOutput } from '@islet/contract'
import type { Client } from './client.ts'
import { hash, type Job, type Known } from './model.ts'
import { FULL, LOST } from './world.ts'

const MAX_JOBS = 6
const OUTPUT_BYTES = 8 * 1024 ** 2
/** The last tenth of a second of a job is a matter of seconds, on a busy machine of a minute. */
const ENDS_BY_MS = 120_000
const WAIT_MS = 2000

/** Prints lines, slowly or many at once, and ends with a code of its own. */
export async function startJob(client: Client, sandbox: Known): Promise<void> {
  if (sandbox.jobs.length >= MAX_JOBS) await checkJob(client, sandbox)
  if (sandbox.jobs.length >= MAX_JOBS) return
  const { random } = client
  const [tag, exitCode] = [client.tag(), Math.floor(random.between(0, 100))]
  const isSlow = random.chance(0.7)
  const lines = Math.floor(isSlow ? random.between(5, 80) : random.between(1000, 100_000))
  const script = isSlow
    ? `i=0; while [ $i -lt ${lines} ]; do i=$((i+1)); echo "$i ${tag}"; sleep 0.1; done; exit ${exitCode}`
    : `seq -f '%.0f ${tag}' ${lines}; exit ${exitCode}`
  const [{ losses }, startedAt] = [sandbox, Date.now()]
  const path = `/sandboxes/${sandbox.id}/processes`
  const command = ['sh', '-c', script]
  const started = await client.try<ProcessInfo>('start a job', sandbox, 'POST', path, { command })
  if (started === FULL) return
  const found = started === LOST ? await findJob(client, path, script) : started
  if (!found) return
  const mayBeLost = started === LOST
  sandbox.jobs.push({ id: found.id, tag, lines, startedAt, exitCode, losses, mayBeLost })
  sandbox.expected.add(`process.started ${found.id}`)
}

async function findJob(client: Client, path: string, script: string): Promise<ProcessInfo | undefined> {
  const { processes } = await client.surely<{ processes: ProcessInfo[] }>(
    'list processes',
    undefined,
    'GET',
    `${path}?limit=1000`,
  )
  return processes.find(({ command }) => command[2] === script)
}

/** One of them, if it has ended. */
export async function checkJob(client: Client, sandbox: Known): Promise<void> {
  const job = client.random.pick(sandbox.jobs)
  if (job) await checkEnd(client, sandbox, job)
}

/** All of them: they must end. */
export async function finishJobs(client: Client, sandbox: Known): Promise<void> {
  const deadline = Date.now() + ENDS_BY_MS
  for (const job of [...sandbox.jobs]) {
    while (sandbox.jobs.includes(job)) {
      await checkEnd(client, sandbox, job)
      if (Date.now() > deadline) assert.fail(`Job ${job.id} of ${sandbox.id} does not end`)
    }
  }
}

async function checkEnd(client: Client, sandbox: Known, job: Job): Promise<void> {
  const path = `/sandboxes/${sandbox.id}/processes/${job.id}`
  const { status, result } = await client.surely<ProcessInfo>(
    'look at a job',
    sandbox,
    'GET',
    `${path}?wait=${WAIT_MS}`,
  )
  if (status === 'running') return
  sandbox.jobs = sandbox.jobs.filter((one) => one !== job)
  const { stdout, droppedBytes, outputBytes } = await client.surely<ProcessOutput>(
    'read the output of a job',
    sandbox,
    'GET',
    `${path}/output?maxBytes=${OUTPUT_BYTES}`,
  )
  if (status === 'lost') {
    const isAllowed = job.mayBeLost || sandbox.losses > job.losses
    assert.ok(isAllowed, `Job ${job.id} of ${sandbox.id} is lost, and nothing had ended it`)
    sandbox.expected.add(`process.lost ${job.id}`)
    return
  }
  const printed = printedBy(job)
  // A full disk removes kept output, from its beginning on.
  const kept = client.world.disk?.wasFull(job.startedAt) ? printed.slice(droppedBytes) : printed
  assert.deepEqual(
    { exitCode: result?.exitCode, outputBytes, output: hash(stdout) },
    { exitCode: job.exitCode, outputBytes: printed.length, output: hash(kept) },
    `Job ${job.id} of ${sandbox.id}, without its first ${droppedBytes} bytes, ends with ${JSON.stringify(stdout.slice(-60))}`,
  )
  sandbox.expected.add(`process.exited ${job.id}`)
}

function printedBy({ lines, tag }: Job): string {
  return Array.from({ length: lines }, (_, index) => `${index + 1} ${tag}\n`).join('')
}
