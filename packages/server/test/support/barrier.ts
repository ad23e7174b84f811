// A fifo on which a command and its test wait for each other: opening one end waits for the other to be opened.
import { execFileSync } from 'node:child_process'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Sandbox } from '@islet/contract'

export interface Gate {
  /** Its absolute path. */
  path: string
  /** Waits until a command reads from it (`cat gate`); then the command waits until `open` is called. */
  reached(): Promise<{ open(): Promise<void> }>
  /** Waits until a command has written to it (`echo > gate`); answers with what it wrote. */
  passed(): Promise<string>
}

export function makeGate({ workdir }: Sandbox, name = 'gate'): Gate {
  const path = join(workdir, name)
  execFileSync('mkfifo', [path])
  return {
    path,
    async reached() {
      const file = await open(path, 'w')
      return { open: () => file.close() }
    },
    async passed() {
      const file = await open(path, 'r')
      try {
        return (await file.readFile('utf8')).trim()
      } finally {
        await file.close()
      }
    },
  }
}
