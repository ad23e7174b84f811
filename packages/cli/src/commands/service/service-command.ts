// What the commands about one service have in common.

import type { ServiceInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { type Colour, print, printJson } from '../../output.ts'

export function serviceCommand(name: string, summary: string, example: string): Command {
  return command(name, summary, example)
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<service>', 'its name')
}

export function statusColour({ status }: ServiceInfo): Colour {
  if (status === 'failed') return 'red'
  if (status === 'ready' || status === 'running') return 'green'
  return status === 'stopped' ? 'dim' : 'yellow'
}

/** Its name, or all of it. */
export function printService(service: ServiceInfo, flags: JsonFlag): void {
  if (flags.json) printJson(service)
  else print(service.name)
}
