// Programs of this machine in a directory of their own. This is no wall: they run as the user of this process.
import { argvOf } from '../run/argv.ts'
import { cleanEnv, runProgram } from '../run/child.ts'
import type { SandboxRunResult } from '../types.ts'
import { OnDisk } from './on-disk.ts'
import type { RunRequest } from './workspace.ts'

export class UnixLocal extends OnDisk {
  static async open(): Promise<UnixLocal> {
    return new UnixLocal(await OnDisk.makeDirectory())
  }

  async run(code: string, request: RunRequest): Promise<SandboxRunResult> {
    const { language, cwd = '.', env, timeoutSeconds, signal } = request
    await using directory = await this.files.directory(cwd)
    // Between this check and the start of the program, `close` cannot run.
    this.checkOpen()
    return await runProgram({
      argv: argvOf(code, language),
      cwd: directory.path,
      env: { ...cleanEnv(), ...env },
      timeoutSeconds,
      signal,
      mark: this.nextMark(),
    })
  }
}
