// Where the C programs are, built when they are missing or older than their sources.
import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { IsletError } from '@islet/contract'

export type NativeProgram = 'guest' | 'warden'

const NATIVE = fileURLToPath(new URL('../../../native', import.meta.url))
const OVERRIDE = { guest: 'ISLET_GUEST_BINARY', warden: 'ISLET_WARDEN_BINARY' }

/** The path of a program that can be executed now. Called at start, so a build may block. */
export function nativeBinary(program: NativeProgram): string {
  const override = process.env[OVERRIDE[program]]
  if (override) return checkOverride(program, override)
  const built = join(NATIVE, 'build', program)
  if (!isFresh(built, program)) make(program)
  return built
}

function checkOverride(program: NativeProgram, path: string): string {
  if (modifiedAt(path) !== undefined) return path
  throw new IsletError('engine_unavailable', `${OVERRIDE[program]} names ${path}, which does not exist.`, {
    hint: `Point ${OVERRIDE[program]} at a built ${program}, or unset it.`,
  })
}

function isFresh(built: string, program: NativeProgram): boolean {
  const builtAt = modifiedAt(built)
  if (builtAt === undefined) return false
  const sources = [join(NATIVE, program), join(NATIVE, 'common')].flatMap(sourcesIn)
  return sources.every((source) => (modifiedAt(source) ?? 0) <= builtAt)
}

function sourcesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => /\.(c|h|def)$/.test(name))
      .map((name) => join(directory, name))
  } catch {
    return [] // an installed package carries the programs without their sources
  }
}

function modifiedAt(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs
}

function make(program: NativeProgram): void {
  try {
    execFileSync('make', ['-C', NATIVE, `build/${program}`], { stdio: ['ignore', 'ignore', 'pipe'] })
  } catch (cause) {
    throw new IsletError('engine_unavailable', `The program ${program} could not be built: ${why(cause)}.`, {
      hint: 'Run: islet setup (it installs gcc and make), or: apt-get install gcc make libc6-dev',
      cause,
    })
  }
}

function why(cause: unknown): string {
  const { code, stderr } = cause as { code?: string; stderr?: Buffer }
  if (code === 'ENOENT') return 'make is not installed'
  const text = stderr?.toString() ?? ''
  if (/gcc: (command )?not found|gcc: No such file/.test(text)) return 'gcc is not installed'
  return text.trim().split('\n').slice(-3).join(' ')
}
