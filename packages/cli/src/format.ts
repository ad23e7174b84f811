// Numbers, times, commands and foreign text for the terminal.
import type { Awake } from '@islet/sdk'

const DURATION_UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const
const SIZE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < SIZE_UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${SIZE_UNITS[unit]}`
}

/** `-` when the size is not known. */
export function formatSize(bytes: number | null): string {
  return bytes === null ? '-' : formatBytes(bytes)
}

export function formatAge(from: string, now = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(from)) / 1000))
  if (seconds < 60) return `${seconds}s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}

/** The time and its age: '2026-01-01T00:00:00Z (3d ago)'. */
export function formatPast(at: string): string {
  return `${at} (${formatAge(at)} ago)`
}

/** The time left: '40s', '3h'. */
export function formatLeft(until: string, now = Date.now()): string {
  return formatAge(new Date(now).toISOString(), Date.parse(until))
}

/** Why a sandbox is awake, or when it goes to sleep. */
export function formatAwake({ reasons, sleepsAt }: Awake): string {
  if (sleepsAt) return `idle, sleeps in ${formatLeft(sleepsAt)} (${sleepsAt})`
  return reasons.map(({ kind, id }) => (id === undefined ? kind : `${kind} ${id}`)).join(', ')
}

/** A timeout of 0 never ends. */
export function formatTimeout(ms: number): string {
  if (ms === 0) return 'never'
  const parts: string[] = []
  let left = ms
  for (const [unit, size] of DURATION_UNITS) {
    const count = Math.floor(left / size)
    if (count > 0) parts.push(`${count}${unit}`)
    left -= count * size
  }
  return parts.join('')
}

export function formatCpu(millis: number): string {
  return millis % 1000 === 0 ? String(millis / 1000) : `${millis}m`
}

/** A command as a user would type it into a shell. */
export function formatCommand(command: string | readonly string[]): string {
  return typeof command === 'string' ? command : command.map(quote).join(' ')
}

/** Quotes a word for a shell, if it needs quotes. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/** Replaces control characters: names and commands come from sandboxes and must not control the terminal. */
export function clean(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => (character === '\n' ? '↵' : '·'))
}

/** Like `clean`, but keeps the information: a control character becomes \x1b. */
export function escapeControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  })
}
