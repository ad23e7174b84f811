// The cells of a server, those that wait in its warm pool among them.
import { readdirSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { ServerInfo } from '@islet/contract'
import { slotOf } from './leftovers.ts'
import type { TestServer } from './server.ts'

/** Until as many wait as the server wants. */
export async function warm(server: TestServer): Promise<ServerInfo['warm']> {
  const islet = server.islet()
  for (;;) {
    const { warm } = await islet.info()
    if (warm.ready >= warm.target) return warm
    await setTimeout(20)
  }
}

export const cellsDirectory = ({ dataDir }: TestServer): string => `/run/islet/${slotOf(dataDir)}/s`

/** Waiting or not. */
export function cellsOf(server: TestServer): string[] {
  return readdirSync(cellsDirectory(server))
}
