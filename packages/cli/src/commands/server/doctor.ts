import type { Finding } from '@islet/server/probe'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { checkClient, checkServerSide } from '../../doctor.ts'
import { paint, print, printJson } from '../../output.ts'

export function doctor(): Command {
  return command(
    'doctor',
    'Check this machine and print how to fix what is missing.',
    'sudo islet doctor',
  ).action(async (flags: JsonFlag) => {
    const findings = [...(await checkClient()), ...(await checkServerSide())]
    const isWell = findings.every(({ ok, optional }) => ok || optional)
    process.exitCode = isWell ? 0 : 1
    if (flags.json) return printJson({ ok: isWell, findings })
    for (const finding of findings) report(finding)
    print(isWell ? '\nReady.' : '\nSomething is missing; see above.')
  })
}

function report({ name, ok, detail, mend, optional }: Finding): void {
  const mark = ok ? paint('green', '✔') : optional ? paint('yellow', '!') : paint('red', '✖')
  print(`${mark} ${name.padEnd(16)} ${detail}`)
  if (!ok && mend) print(`  ${paint('dim', `${''.padEnd(16)} fix: ${mend}`)}`)
}
