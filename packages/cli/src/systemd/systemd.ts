// Calls systemd and the group tools of this machine.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { CliError } from '../errors.ts'

const run = promisify(execFile)

export const UNIT = 'islet.service'
export const UNIT_PATH = `/etc/systemd/system/${UNIT}`

export function isBooted(): boolean {
  return existsSync('/run/systemd/system')
}

/** 0 if systemd is missing. */
export async function systemdVersion(): Promise<number> {
  const { stdout } = await run('systemctl', ['--version']).catch(() => ({ stdout: '' }))
  return Number(/^systemd (\d+)/.exec(stdout)?.[1] ?? 0)
}

export async function systemctl(...words: string[]): Promise<string> {
  try {
    return (await run('systemctl', words)).stdout
  } catch (cause) {
    const text = (cause as { stderr?: string }).stderr?.trim() || (cause as Error).message
    throw new CliError('systemd_failed', `systemctl ${words.join(' ')} failed: ${text}`, {
      hint: `systemctl status ${UNIT} and journalctl -u ${UNIT} show details.`,
      cause,
    })
  }
}

/** Properties such as ActiveState. */
export async function unitState(...names: string[]): Promise<Record<string, string>> {
  const text = await systemctl('show', UNIT, `--property=${names.join(',')}`)
  return Object.fromEntries(
    text
      .split('\n')
      .filter((line) => line.includes('='))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
}

export async function readUnit(): Promise<string> {
  return readFile(UNIT_PATH, 'utf8').catch(() => '')
}

/** Replaces the unit atomically. */
export async function writeUnit(text: string): Promise<void> {
  const temporary = `${UNIT_PATH}.new`
  await writeFile(temporary, text, { mode: 0o644 })
  await rename(temporary, UNIT_PATH)
}

export async function lastLines(): Promise<string> {
  const words = ['--unit', UNIT, '--lines', '20', '--no-pager', '--output', 'cat']
  return (await run('journalctl', words).catch(() => ({ stdout: '' }))).stdout.trim()
}

/** Answers whether the group was created. */
export async function ensureGroup(name: string): Promise<boolean> {
  if (await run('getent', ['group', name]).catch(() => undefined)) return false
  try {
    await run('groupadd', ['--system', name])
    return true
  } catch (cause) {
    throw new CliError(
      'group_failed',
      `The group ${name} could not be created: ${(cause as Error).message}`,
      {
        hint: 'Create the group yourself and run this again; ISLET_GROUP= works without a group.',
        cause,
      },
    )
  }
}

/** groupdel keeps the primary group of a user. */
export async function removeGroup(name: string): Promise<void> {
  await run('groupdel', [name]).catch(() => {})
}
