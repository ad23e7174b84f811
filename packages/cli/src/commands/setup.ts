import type { Command } from 'commander'
import { command } from '../command.ts'
import { runSetup } from '../setup.ts'

export function setup(): Command {
  return command('setup', 'Install what Islet needs on this machine (as root).', 'sudo islet setup')
    .option('--test', 'also what its tests need')
    .option('--print', 'only print which packages are missing')
    .action(async (flags: { test?: true; print?: true }) => {
      const passed = [...(flags.test ? ['--test'] : []), ...(flags.print ? ['--print'] : [])]
      process.exitCode = await runSetup(passed)
    })
}
