import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { reportImage, StepLine } from '../../image-progress.ts'

export function pull(): Command {
  return command('pull', 'Get an image from a registry.', 'islet image pull python:3.13-slim --name python')
    .argument('<reference>', 'like python:3.13-slim or ghcr.io/me/app@sha256:...')
    .option('--name <name>', 'the runtime name it gets; default: the reference')
    .option('--insecure', 'allow a registry without TLS')
    .action(async (reference: string, flags: JsonFlag & { name?: string; insecure?: true }) => {
      const { name, insecure } = flags
      using line = new StepLine()
      const image = await connect().images.pull(reference, { name, insecure, onProgress: line.show })
      reportImage(image, flags)
    })
}
