// The packages, packed as they are published, and installed into empty directories.
import { execFile } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../support/server.ts'

const run = promisify(execFile)
const LIMIT = { maxBuffer: 64 * 1024 * 1024, timeout: 280_000 }

/** Its directory goes with the process, also when a test file fails before its first test. */
export class Packed {
  readonly directory: string
  readonly islet: string
  readonly sdk: string
  readonly dialects: string

  static async make(): Promise<Packed> {
    const directory = mkdtempSync(join(tmpdir(), 'islet-packages-'))
    process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
    await run(process.execPath, ['scripts/pack.ts', directory], { cwd: root, ...LIMIT })
    return new Packed(directory)
  }

  private constructor(directory: string) {
    this.directory = directory
    const names = globSync('*', { cwd: directory }).sort()
    if (names.length !== 3) throw new Error(`packed ${names}`)
    const [islet, dialects, sdk] = names.map((name) => join(directory, name))
    this.islet = islet!
    this.dialects = dialects!
    this.sdk = sdk!
  }

  /** An empty project with these packages and files. */
  async project(name: string, packages: string[], files: Record<string, string> = {}): Promise<string> {
    const directory = join(this.directory, name)
    mkdirSync(directory)
    writeFileSync(join(directory, 'package.json'), '{ "private": true }')
    for (const [path, text] of Object.entries(files)) writeFileSync(join(directory, path), text)
    await npm(['install', ...packages], directory)
    return directory
  }

  /** As `npm install --global` does, below a directory of its own. Returns the prefix. */
  async global(): Promise<string> {
    const prefix = join(this.directory, 'global')
    await npm(['install', '--global', '--prefix', prefix, this.islet], this.directory)
    return prefix
  }
}

/** A directory with all programs of this machine but compilers and Node, for PATH. */
export function withoutCompilers(directory: string): string {
  mkdirSync(directory)
  for (const path of globSync('/usr/{bin,sbin}/*')) {
    const name = basename(path)
    if (
      /^(.*-)?(gcc|cc|c89|c99|clang|tcc|g\+\+|c\+\+|cpp)(-\d+)?$|^(make|gmake|as|ld|node|npm|npx)$/.test(name)
    )
      continue
    try {
      symlinkSync(path, join(directory, name))
    } catch {
      // bin comes first
    }
  }
  return directory
}

export async function npm(args: string[], cwd: string): Promise<void> {
  await run('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], { cwd, ...LIMIT })
}

/** Returns the output of the command; throws with all of it if the command fails. */
export async function say(
  command: string,
  args: string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  try {
    return (await run(command, args, { ...LIMIT, ...options })).stdout
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string }
    throw new Error(`${command} ${args.join(' ')}\n${stdout ?? ''}${stderr ?? ''}`, { cause: error })
  }
}
