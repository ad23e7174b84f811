import { readFile } from 'node:fs/promises'

/** Which programs a machine has, roughly: its distribution and release. */
export async function systemName(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '')
  const field = (name: string) => new RegExp(`^${name}="?([^"\n]*)"?$`, 'm').exec(text)?.[1] ?? ''
  return `${field('ID') || process.platform} ${field('VERSION_ID')}`.trim()
}
