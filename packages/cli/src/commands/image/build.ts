import { Argument, type Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { reportImage, StepLine } from '../../image-progress.ts'

export function build(): Command {
  return command('build', 'Build the full Debian base: python, node, git and more.', 'islet image build base')
    .addArgument(new Argument('<runtime>', 'what to build').choices(['base']))
    .action(async (runtime: 'base', flags: JsonFlag) => {
      using line = new StepLine()
      reportImage(await connect().images.build(runtime, { onProgress: line.show }), flags)
    })
}
