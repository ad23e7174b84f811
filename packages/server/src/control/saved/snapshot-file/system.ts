import { readFile } from 'node:fs/promises'

/** The distribution and release of this machine, which tell roughly what programs it has. */
export async function systemName(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '')
  const field = (name: string) => new RegExp(`^${name}="?([^"\n]*)"?$`, 'm').exec(text)?.[1] ?? ''
  return `${field('ID') || process.platform} ${field('VERSION_ID')}`.trim()
}
