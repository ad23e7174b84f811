// A container with the workspace mounted at /workspace; dockerode speaks to the daemon, which must run on this machine.
//
// The first process of the container waits for the end of its stdin. The daemon ends that when the connection of this process breaks, so
// the container also ends if this process is killed.
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasCode, IsletError } from '@islet/sdk'
import { load } from '../load.ts'
import { argvOf } from '../run/argv.ts'
import { aborted } from '../run/child.ts'
import { MARK } from '../run/descendants.ts'
import { killScript } from '../run/kill-script.ts'
import { Output } from '../run/output.ts'
import type { SandboxRunResult } from '../types.ts'
import type { DockerContainer, DockerExec, DockerModule, Dockerode } from './dockerode.ts'
import { OnDisk, removeTree } from './on-disk.ts'
import type { RunRequest } from './workspace.ts'

const INSIDE = '/workspace'
const PIDS = 1024
const DRAIN_MS = 2000
const NOT_STARTED = 'OCI runtime exec failed'

export class Docker extends OnDisk {
  readonly #docker: Dockerode
  readonly #container: DockerContainer

  static async open(image: string): Promise<Docker> {
    const { default: Client } = await load<DockerModule>(['dockerode'], 'the backend docker')
    const docker = new Client()
    const directory = await OnDisk.makeDirectory()
    try {
      return new Docker(directory, docker, await startContainer(docker, image, directory))
    } catch (error) {
      await removeTree(directory)
      throw error
    }
  }

  private constructor(directory: string, docker: Dockerode, container: DockerContainer) {
    super(directory, [INSIDE])
    this.#docker = docker
    this.#container = container
  }

  async run(code: string, request: RunRequest): Promise<SandboxRunResult> {
    if (request.signal?.aborted) throw aborted(request.signal)
    try {
      return await this.#run(code, request)
    } catch (error) {
      if (!isGone(error)) throw error
      throw new IsletError('sandbox_lost', 'The container has ended.', { cause: error })
    }
  }

  override async close(): Promise<void> {
    try {
      await this.#container.remove({ force: true }).catch(ignoreGone)
    } finally {
      await super.close()
    }
  }

  async #run(
    code: string,
    { language, cwd, env, timeoutSeconds, signal }: RunRequest,
  ): Promise<SandboxRunResult> {
    const mark = this.nextMark()
    const argv = argvOf(code, language)
    const exec = await this.#container.exec({
      Cmd: argv,
      Env: [...Object.entries(env).map(([name, value]) => `${name}=${value}`), `${MARK}=${mark}`],
      WorkingDir: cwd === undefined ? INSIDE : await this.#inside(cwd),
      AttachStdout: true,
      AttachStderr: true,
    })
    const output = new Output()
    const ended = this.#follow(exec, output)
    if ((await firstOf(ended, timeoutSeconds, signal)) === 'ended') {
      const result = output.result(await exitCodeOf(exec), false)
      // The daemon prints why it could not start a program.
      if (result.exitCode! < 126 || !result.output.startsWith(NOT_STARTED)) return result
      throw new IsletError('interpreter_not_found', `The image cannot start ${argv[0]}.`, {
        hint: 'Choose another dockerImage.',
        details: { output: result.output.slice(0, 1000) },
      })
    }
    await this.#kill(mark)
    await Promise.race([ended, sleep(DRAIN_MS, undefined, { ref: false })])
    if (signal?.aborted) throw aborted(signal)
    return output.result(0, true)
  }

  /** The directory under its name in the container, once it is known to be one of the workspace. */
  async #inside(cwd: string): Promise<string> {
    await (await this.files.directory(cwd))[Symbol.asyncDispose]()
    const base = [this.files.root, INSIDE].find((root) => cwd === root || cwd.startsWith(`${root}/`))
    return base === undefined ? `${INSIDE}/${cwd}` : INSIDE + cwd.slice(base.length)
  }

  /** Resolves when the output ends; the daemon ends it soon after the process, also if another process holds its pipes. */
  async #follow(exec: DockerExec, output: Output): Promise<void> {
    const stream = await exec.start({ hijack: true, stdin: false })
    this.#docker.modem.demuxStream(stream, sink(output, 'stdout'), sink(output, 'stderr'))
    await new Promise<void>((resolve, reject) => {
      stream.once('end', resolve).once('close', resolve).once('error', reject)
    })
  }

  /** If the processes cannot be found and killed, such as when there is no room for another process, the container is restarted. */
  async #kill(mark: string): Promise<void> {
    try {
      const exec = await this.#container.exec({
        Cmd: killScript(mark, { hasSession: true }),
        AttachStdout: true,
        AttachStderr: true,
      })
      await this.#follow(exec, new Output())
      if ((await exitCodeOf(exec)) === 0) return
    } catch {
      // The container is restarted below.
    }
    await this.#container.restart({ t: 0 })
    await hold(this.#container)
  }
}

async function startContainer(docker: Dockerode, image: string, directory: string): Promise<DockerContainer> {
  const options = {
    Image: image,
    Entrypoint: ['cat'],
    Cmd: [],
    WorkingDir: INSIDE,
    OpenStdin: true,
    StdinOnce: true,
    AttachStdin: true,
    AttachStdout: false,
    AttachStderr: false,
    Labels: { 'islet.agentium': directory },
    // The owner of the directory, so that this process can read and remove what the container writes.
    User: `${process.getuid!()}:${process.getgid!()}`,
    HostConfig: {
      Binds: [`${directory}:${INSIDE}`],
      AutoRemove: true,
      // An init process collects the processes that a killed run leaves.
      Init: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      PidsLimit: PIDS,
    },
  }
  const container = await created(docker, options)
  try {
    await hold(container)
    await container.start()
    return container
  } catch (error) {
    await container.remove({ force: true }).catch(() => {})
    throw explained(error)
  }
}

/** Keeps the stdin of the container open as long as this process lives, without keeping this process alive. */
async function hold(container: DockerContainer): Promise<void> {
  const stdin = await container.attach({ stream: true, stdin: true, hijack: true })
  stdin.on('error', () => {})
  stdin.unref?.()
}

/** Like `docker run`, pulls an image that the machine does not have. */
async function created(docker: Dockerode, options: { Image: string }): Promise<DockerContainer> {
  try {
    return await docker.createContainer(options)
  } catch (error) {
    if (!isStatus(error, 404)) throw explained(error)
  }
  try {
    const progress = await docker.pull(options.Image)
    await new Promise<void>((resolve, reject) => {
      docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve()))
    })
    return await docker.createContainer(options)
  } catch (error) {
    throw new IsletError('registry_unavailable', `Docker has no image ${options.Image}: ${textOf(error)}`, {
      cause: error,
    })
  }
}

type Outcome = 'ended' | 'over'

/** The end of the run, its timeout, or its abort, whichever is first. */
async function firstOf(ended: Promise<void>, seconds: number, signal?: AbortSignal): Promise<Outcome> {
  const over = new AbortController()
  const stop = () => over.abort()
  signal?.addEventListener('abort', stop, { once: true })
  const timer = sleep(seconds * 1000, 'over' as const, { signal: over.signal }).catch(() => 'over' as const)
  try {
    return await Promise.race([ended.then(() => 'ended' as const), timer])
  } finally {
    signal?.removeEventListener('abort', stop)
    stop()
  }
}

async function exitCodeOf(exec: DockerExec): Promise<number> {
  for (;;) {
    const { Running, ExitCode } = await exec.inspect()
    if (!Running) return ExitCode ?? 0
    await sleep(20)
  }
}

function sink(output: Output, channel: 'stdout' | 'stderr'): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      output.add(channel, chunk)
      done()
    },
  })
}

function ignoreGone(error: unknown): void {
  if (!isGone(error)) throw error
}

/** The container ended by itself, or is being removed. */
function isGone(error: unknown): boolean {
  return isStatus(error, 404) || isStatus(error, 409)
}

function isStatus(error: unknown, status: number): boolean {
  return (error as { statusCode?: unknown } | null)?.statusCode === status
}

function explained(error: unknown): unknown {
  if (hasCode(error, 'not_supported')) return error
  return new IsletError('engine_unavailable', `Docker could not start the container: ${textOf(error)}`, {
    cause: error,
    hint: 'Check that dockerd runs on this machine and that you may use it; DOCKER_HOST names its socket.',
  })
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
