import type { Command } from 'commander'
import { command } from '../command.ts'
import { runSetup } from '../setup.ts'

export function setup(): Command {
  return command('setup', 'Install what Islet needs on this machine (as root).', 'sudo islet setup')
    .option('--test', 'also what its tests need')
    .option('--gvisor', 'also runsc, for ISLET_ISOLATION=gvisor')
    .option('--print', 'only print which packages are missing')
    .action(async (flags: { test?: true; gvisor?: true; print?: true }) => {
      const passed = (['test', 'gvisor', 'print'] as const)
        .filter((name) => flags[name])
        .map((name) => `--${name}`)
      process.exitCode = await runSetup(passed)
    })
}
