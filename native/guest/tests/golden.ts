// Bytes as they were on the wire when generation 1 was made. They never change: see golden.txt.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Golden {
  title: string
  sent: Buffer
  answered: Buffer
}

/** Reads "# title", "> hex" (server to guest) and "< hex" (the guest's answer) lines. */
export function golden(): Golden[] {
  const entries: Golden[] = []
  for (const line of readFileSync(join(import.meta.dirname, 'golden.txt'), 'utf8').split('\n')) {
    if (line.startsWith('# '))
      entries.push({ title: line.slice(2), sent: Buffer.alloc(0), answered: Buffer.alloc(0) })
    const entry = entries.at(-1)
    if (line.startsWith('> ')) entry!.sent = Buffer.from(line.slice(2), 'hex')
    if (line.startsWith('< ')) entry!.answered = Buffer.from(line.slice(2), 'hex')
  }
  return entries
}
