// Finds the C programs. The package has them for each architecture; in a clone they are built when they are missing or older than
// their sources.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { IsletError } from '@islet/contract'

export type NativeProgram = 'guest' | 'warden'

/** In the package the code is in dist/, beside native/. */
const PREBUILT = fileURLToPath(new URL('../native', import.meta.url))
const NATIVE = fileURLToPath(new URL('../../../native', import.meta.url))
const OVERRIDE = { guest: 'ISLET_GUEST_BINARY', warden: 'ISLET_WARDEN_BINARY' }

/** The path of a program that can be executed now. Called at start, so a build may block. */
export function nativeBinary(program: NativeProgram): string {
  const override = process.env[OVERRIDE[program]]
  if (override) return checkOverride(program, override)
  if (existsSync(PREBUILT)) return prebuilt(program)
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

function prebuilt(program: NativeProgram): string {
  const path = join(PREBUILT, `${process.platform}-${process.arch}`, program)
  if (existsSync(path)) return path
  throw new IsletError(
    'engine_unavailable',
    `This package has no ${program} for ${process.platform} on ${process.arch}.`,
    {
      hint: `It has: ${readdirSync(PREBUILT).join(', ')}. Elsewhere run Islet from a clone, or name a built one with ${OVERRIDE[program]}.`,
    },
  )
}

function isFresh(built: string, program: NativeProgram): boolean {
  const builtAt = modifiedAt(built)
  if (builtAt === undefined) return false
  const sources = [join(NATIVE, program), join(NATIVE, 'common')].flatMap(sourcesIn)
  return sources.every((source) => (modifiedAt(source) ?? 0) <= builtAt)
}

function sourcesIn(directory: string): string[] {
  return readdirSync(directory)
    .filter((name) => /\.(c|h|def)$/.test(name))
    .map((name) => join(directory, name))
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
