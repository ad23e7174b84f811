// An agent that stores each completed step: after a crash it continues in the same sandbox, with the first step that is not stored.
import { Sandbox } from 'islet'

await using sandbox = await Sandbox.create()
const steps = ['mkdir -p work', 'seq 1 10 > work/numbers', 'wc -l < work/numbers', 'rm -r work']

/** Answers with how many steps were left to take. */
async function work(options: { crashAfter?: number } = {}): Promise<number> {
  const { keys } = await sandbox.store.list({ prefix: 'step_' })
  for (let step = keys.length; step < steps.length; step++) {
    if (step === options.crashAfter) return steps.length - step
    const { stdout, exitCode } = await sandbox.runCommand(steps[step]!)
    await sandbox.store.set(`step_${step}`, { value: { output: stdout, ok: exitCode === 0 } })
  }
  return 0
}

console.log('left after the crash:', await work({ crashAfter: 2 }))
console.log('left at the end:', await work())

const { value } = await sandbox.store.get('step_2')
const { output, ok } = value as { output: string; ok: boolean }
if (!ok || output.trim() !== '10') throw new Error(`unexpected: ${JSON.stringify(value)}`)
console.log('step 2 said', output.trim())
