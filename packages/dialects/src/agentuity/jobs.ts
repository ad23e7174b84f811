import { hasCode, refuseUnknown, type Sandbox } from '@islet/sdk'
import { type JobInfo, streamUrls, toJob } from './info.ts'

/** A command in the background, as it was when it was last asked for. */
export interface JobInstance extends JobInfo {
  stdoutStreamUrl?: string
  stderrStreamUrl?: string
  get(): Promise<JobInstance>
  /** Ends it, at once with `force`. */
  stop(force?: boolean): Promise<JobInstance>
}

/** How long a job may take to end by itself. */
const GRACE_MS = 10_000

export async function createJob(sandbox: Sandbox, job: { command: string[] }): Promise<JobInstance> {
  refuseUnknown('client.createJob', job, { command: 1 })
  return toInstance(sandbox, toJob(await sandbox.exec.spawn(job.command)))
}

/** Newest first. */
export async function listJobs(sandbox: Sandbox, limit: number): Promise<JobInstance[]> {
  const jobs = await sandbox.exec.list({ kind: 'job', limit })
  return Promise.all(jobs.map((job) => toInstance(sandbox, toJob(job))))
}

async function toInstance(sandbox: Sandbox, job: JobInfo): Promise<JobInstance> {
  const again = async () => toInstance(sandbox, toJob(await sandbox.exec.get(job.jobId)))
  return {
    ...job,
    ...(await streamUrls(sandbox, job.jobId)),
    get: again,
    stop: async (force = false) => {
      await stop(sandbox, job.jobId, force)
      return again()
    },
  }
}

/** Resolves when the job has ended. */
async function stop(sandbox: Sandbox, jobId: string, force: boolean): Promise<void> {
  const session = await sandbox.exec.attach(jobId, { replay: false })
  const ended = session.result.then(() => true)
  const kill = (signal: string) =>
    session.kill(signal).catch((error) => {
      if (!hasCode(error, 'invalid_state')) throw error
    })
  if (!force) await kill('SIGTERM')
  const inTime = !force && (await Promise.race([ended, after(GRACE_MS)]))
  if (!inTime) await kill('SIGKILL')
  await ended
}

function after(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms))
}
