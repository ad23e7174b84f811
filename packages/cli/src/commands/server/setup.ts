import type { Command } from 'commander'
import { command } from '../../command.ts'
import { runSetup } from '../../setup.ts'

export function setup(): Command {
  return command('setup', 'Install the system packages that Islet needs (as root).', 'sudo islet setup')
    .option('--test', 'also install what the tests need')
    .option('--gvisor', 'also install runsc, for ISLET_ISOLATION=gvisor')
    .option('--print', 'only print the missing packages')
    .action(async (flags: { test?: true; gvisor?: true; print?: true }) => {
      const passed = (['test', 'gvisor', 'print'] as const)
        .filter((name) => flags[name])
        .map((name) => `--${name}`)
      process.exitCode = await runSetup(passed)
    })
}
