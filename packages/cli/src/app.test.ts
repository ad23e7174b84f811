// The command line without a server: help and usage errors.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CommanderError } from 'commander'
import { createProgram } from './app.ts'
import { pathOf, walk } from './command.ts'
import { UsageError } from './errors.ts'

const HEADINGS = ['Sandboxes:', 'Inside a sandbox:', 'Saved states:', 'The server and this machine:']
const VARIABLES = ['ISLET_URL', 'ISLET_API_KEY', 'ISLET_DATA_DIR', 'NO_COLOR']

test('the help groups the commands and names the variables', () => {
  const program = createProgram()
  const help = helpOf(program)
  for (const heading of HEADINGS) assert.ok(help.includes(`\n${heading}\n  `), heading)
  assert.ok(!help.includes('\nCommands:'), 'every command is in a group')
  for (const name of VARIABLES) assert.ok(help.includes(name), name)
})

test('the help of every command has a summary and an example', () => {
  for (const command of walk(createProgram())) {
    if (command.name().startsWith('__')) continue
    assert.match(command.description(), /^[A-Z].*\.$/, pathOf(command))
    assert.match(helpOf(command), /\nExample:\n {2}.*\bislet\b/, pathOf(command))
  }
})

describe('these words are a usage error:', () => {
  for (const line of [
    'frob',
    'run',
    'run --memory lots true',
    'exec',
    'exec -id dev true',
    'exec -td dev true',
    'exec -in dev true',
    'exec -tn dev true',
    'exec --no-keep-awake dev true',
    'code dev -l cobol',
    'cp a b',
    'rm',
    'update dev',
    'pause',
    'timeout',
    'timeout dev --idle soon',
    'timeout dev --on-idle x',
    'events dev --type unheard',
    'events dev --since noon',
    'events dev --limit x',
    'create --reuse',
    'create --checkpoint ckp-00000000000000000000 --runtime host',
    'create --snapshot first --runtime host',
    'snapshot create',
    'preview dev',
    'preview dev x',
    'preview ls',
    'preview rm dev',
    'env set dev NOVALUE',
    'env set dev',
    'env set dev =x',
    'url dev sent --expires soon',
    'token dev --expires soon',
    'store frob',
    'store set dev x text',
    'store set dev x 1 --ttl soon',
    'signal dev port 3000 ajar',
    'signal dev server-ready',
    'signal dev error',
    'signal dev mine text',
    'signal dev mine {} {}',
    'service start dev x --restart maybe -- true',
    'service start dev x --health-delay 1s -- true',
    'service start dev x --port 80 true',
    'service uninstall --data-dir /tmp',
    'completion ksh',
  ]) {
    test(line, async () => assert.rejects(parse(line.split(' ')), isUsageError))
  }
})

describe('our option after the name of the sandbox is refused, with the right order in the hint:', () => {
  for (const [words, right] of [
    [['exec', 'dev', '--user', 'root', '--', 'id', '-u'], 'islet exec --user root dev -- id -u'],
    [['exec', 'dev', '--env=A=b c', '-it', 'sh'], "islet exec '--env=A=b c' -it dev -- sh"],
    [['sh', 'dev', '-w', '/tmp'], 'islet sh -w /tmp dev'],
  ] as const) {
    test(words.join(' '), async () =>
      assert.rejects(parse(words), (error: UsageError) => {
        assert.match(error.message, /must come before the name of the sandbox\.$/)
        assert.equal(error.hint, right)
        return true
      }),
    )
  }
})

function helpOf(command: ReturnType<typeof createProgram>): string {
  let help = ''
  const writeOut = (text: string) => {
    help += text
  }
  command.configureOutput({ writeOut }).outputHelp()
  return help
}

async function parse(words: readonly string[]): Promise<void> {
  await createProgram({ hasSeparator: words.includes('--'), json: true }).parseAsync(words, { from: 'user' })
}

function isUsageError(error: unknown): boolean {
  return error instanceof UsageError || (error instanceof CommanderError && error.exitCode !== 0)
}
