import type { Command } from 'commander'
import { cpu, integer, size } from './parse.ts'

export interface ResourceFlags {
  memory?: string
  cpu?: string
  disk?: string
  pids?: number
}

export function addResourceOptions(command: Command): Command {
  return command
    .option('--memory <size>', 'the most memory, like 512Mi', size)
    .option('--cpu <cores>', 'the most CPU, like 0.5 or 500m', cpu)
    .option('--disk <size>', 'the most disk, like 2Gi', size)
    .option('--pids <count>', 'the most processes and threads', integer)
}

export function toResources({ memory, cpu, disk, pids }: ResourceFlags) {
  const given = { memory, cpu, disk, pids }
  return Object.values(given).some((value) => value !== undefined) ? given : undefined
}
