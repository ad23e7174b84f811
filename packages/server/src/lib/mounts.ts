import { readFile } from 'node:fs/promises'

export interface Mount {
  at: string
  type: string
  device: string
  isReadOnly: boolean
}

/** The mounts of this process's mount namespace, oldest first. */
export async function listMounts(): Promise<Mount[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')
  return lines.filter(Boolean).map((line) => {
    const [left = '', right = ''] = line.split(' - ')
    const [type = '', device = '', options = ''] = right.split(' ')
    return {
      at: unescapeOctal(left.split(' ')[4]!),
      type,
      device: unescapeOctal(device),
      isReadOnly: options.split(',').includes('ro'),
    }
  })
}

/** mountinfo writes space, tab, newline and backslash as octal escapes. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}
