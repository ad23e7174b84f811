import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { test } from 'node:test'
import { hasCode, Islet, type IsletError, Sandbox, type SandboxInfo } from './index.ts'

/** Classes and methods that are not public. */
const INTERNAL = new Set(['Client', 'Connection', 'OutputCursor', 'Session', 'TerminalInstance.open'])
/** The option names, in the form that methods list them. */
const TAKES_OPTIONS = /^[^{]*\boptions\b/
const MOST_PARAMETERS = 4

interface Member {
  name: string
  call(...args: unknown[]): Promise<unknown>
}

async function publicMethods(): Promise<Member[]> {
  const found: Member[] = []
  const seen = new Set<unknown>()
  const files = globSync('**/*.ts', { cwd: import.meta.dirname }).filter((name) => !name.endsWith('.test.ts'))
  for (const file of files) {
    const module = (await import(`./${file}`)) as Record<string, unknown>
    for (const [name, value] of Object.entries(module)) {
      if (typeof value !== 'function' || !/^class\b/.test(String(value)) || seen.has(value)) continue
      seen.add(value)
      if (INTERNAL.has(name) || value.prototype instanceof Error) continue
      found.push(...methodsOf(name, value), ...methodsOf(name, value.prototype))
    }
  }
  return found
}

function methodsOf(owner: string, target: object): Member[] {
  const properties = Object.entries(Object.getOwnPropertyDescriptors(target))
  return (
    properties
      .filter(
        ([key, { value }]) => typeof value === 'function' && key !== 'constructor' && key !== 'prototype',
      )
      .filter(([key]) => !INTERNAL.has(`${owner}.${key}`))
      // A method that is guarded hides its parameters; another one must not have any for options.
      .filter(
        ([, { value }]) =>
          /^function \(\s*\.\.\.args/.test(String(value)) || TAKES_OPTIONS.test(String(value)),
      )
      .map(([key, { value }]) => ({
        name: `${owner}.${key}`,
        // Options are looked at before anything else: no sandbox is needed.
        call: async (...args) => {
          const result = value.apply({}, args)
          return Symbol.asyncIterator in Object(result) ? result.next() : result
        },
      }))
  )
}

const refusal = async (call: Promise<unknown>): Promise<IsletError | undefined> => {
  const error = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  return hasCode(error, 'bad_request') ? error : undefined
}

test('every public method refuses an option that it does not know, and says what it takes', async () => {
  const methods = await publicMethods()
  assert.ok(methods.length > 100, `${methods.length} methods were found`)
  for (const { name, call } of methods) {
    let told: IsletError | undefined
    for (let before = 0; before < MOST_PARAMETERS && !told; before++) {
      const error = await refusal(call(...Array(before).fill(undefined), { nonsense: 1 }))
      if (error?.message.includes('nonsense') && error.hint?.includes('signal')) told = error
    }
    assert.ok(told, `${name} takes options it does not know`)
    assert.ok(told.message.includes(`.${name.split('.')[1]} does not know the option nonsense`), told.message)
    const more = await refusal(call(...Array(MOST_PARAMETERS + 1).fill(undefined), {}))
    assert.ok(more, `${name} takes any number of arguments`)
  }
})

test('a client, the runtimes and a third argument of runCode are looked at too', async () => {
  assert.throws(() => new Islet({ apikey: 'x' } as object), /Islet does not know the option apikey/)
  const islet = new Islet({ url: 'http://127.0.0.1:9' })
  assert.ok(await refusal(islet.runtimes.list({ nonsense: 1 } as object)))
  const { runCode } = Sandbox.prototype
  const run = (...args: unknown[]) =>
    refusal(runCode.apply({} as Sandbox, args as Parameters<typeof runCode>))
  const unknown = await run('code', { onStdout() {} })
  assert.match(unknown?.message ?? '', /sandbox\.runCode does not know the option onStdout/)
  assert.ok(await run('code', 'python', { onStdout() {} }))
  const client = new Sandbox({} as ConstructorParameters<typeof Sandbox>[0], { id: 'sbx' } as SandboxInfo)
  const twice = await refusal(client.runCode('code', { language: 'js' }, {}))
  assert.match(twice?.message ?? '', /options only once/)
})

test('an option that is undefined was not given, and options that are none are refused', async () => {
  const islet = new Islet({ url: 'http://127.0.0.1:9', retries: 0 })
  const failed = await islet.info({ nonsense: undefined } as object).catch((error: unknown) => error)
  assert.ok(hasCode(failed, 'connection_failed'))
  for (const odd of [null, 'x', 1, ['x']]) assert.ok(await refusal(islet.info(odd as object)), String(odd))
})

/** Never called: `tsc` reads it. */
export function typesRefuse(sandbox: Sandbox, islet: Islet): unknown[] {
  return [
    // @ts-expect-error runCode has no callbacks
    sandbox.runCode('1', { onStdout() {} }),
    // @ts-expect-error nor beside a language
    sandbox.runCode('1', 'python', { onStdout() {} }),
    // @ts-expect-error not a language
    sandbox.runCode('1', 'cobol'),
    // @ts-expect-error run has two arguments
    sandbox.exec.run('ls', {}, {}),
    // @ts-expect-error the result has the exit code
    sandbox.exec.run('ls', { onExit() {} }),
    // @ts-expect-error a path is no stream
    sandbox.exec.run('ls', { stdout: '/tmp/out' }),
    // @ts-expect-error misspelled
    sandbox.exec.start('ls', { timout: 1 }),
    // @ts-expect-error misspelled
    sandbox.runCommand('ls', { backgroud: true }),
    // @ts-expect-error misspelled
    sandbox.files.write('a', 'b', { owners: 'root' }),
    // @ts-expect-error misspelled
    sandbox.service.start({ name: 'a', start: 'b', restart: 'always' }),
    // @ts-expect-error misspelled
    sandbox.update({ nam: 'a' }),
    // @ts-expect-error misspelled
    islet.sandboxes.create({ runtim: 'base' }),
    // @ts-expect-error run has two arguments
    islet.run('ls', {}, {}),
    // @ts-expect-error misspelled
    islet.images.pull('a', { insecur: true }),
    // @ts-expect-error misspelled
    new Islet({ apikey: 'x' }),
  ]
}
