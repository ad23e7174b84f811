// Runs test files with node --test. A file that fails is run once more, alone, after all others: if it passes then, the end of the
// output lists it as flaky with its first error, else as failed. The last line has the counts.
//
//   node scripts/run-tests.ts          all tests
//   node scripts/run-tests.ts PATH…    only these (files or patterns)
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, constants, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createImages } from '../packages/server/src/image/images.ts'
import type { FileResult, Results } from './test-record.ts'

interface Pass {
  paths: readonly string[]
  concurrency: number
  env?: Record<string, string>
}

/** Time limit of one test. The longest, a thousand kills, takes a minute on two free cores. */
const LIMIT_MS = 300_000
/** How long the processes of a run that is interrupted may take to end. */
const END_MS = 10_000
const END = fileURLToPath(new URL('test-end.ts', import.meta.url))
const RECORD = fileURLToPath(new URL('test-record.ts', import.meta.url))
const sanitized = (program: string): string =>
  fileURLToPath(new URL(`../native/build/asan/${program}`, import.meta.url))

const NATIVE = ['native/guest/tests/*.test.ts', 'packages/server/src/warden/*.test.ts']
/** These bound the memory of the guest, which the sanitizers multiply. All other tests use the guest and the warden without sanitizers. */
const NATIVE_MEMORY = 'native/guest/tests/{files,output}.test.ts'
/** Many tests wait more than they compute. */
const CONCURRENCY = 2 * availableParallelism()

const ALL: readonly Pass[] = [
  {
    paths: NATIVE,
    concurrency: CONCURRENCY,
    env: { GUEST_BINARY: sanitized('guest'), WARDEN_BINARY: sanitized('warden') },
  },
  {
    paths: [
      NATIVE_MEMORY,
      ...globSync('{native,packages,tests,bench}/**/*.test.ts', { exclude: [...NATIVE, '**/node_modules'] }),
    ],
    concurrency: CONCURRENCY,
  },
]

const scratch = mkdtempSync(join(tmpdir(), 'islet-run-tests-'))
let running: ChildProcess | undefined
let interrupted = false
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => void interrupt(signal))

const paths = process.argv.slice(2)
const concurrency = Number(process.env.ISLET_TEST_CONCURRENCY ?? 2)
const passes = paths.length > 0 ? [{ paths, concurrency }] : ALL
// Test servers copy this image, because building it takes more of the CPU than the rest of their start.
const imagesDir = join(scratch, 'images')
await createImages({ imagesDir, inUse: async () => new Set() }).resolve('host')
const notes: string[] = []
const total = { passed: 0, failed: 0, skipped: 0 }
for (const pass of passes) for (const result of await runPass(pass)) add(result)
rmSync(scratch, { recursive: true })
for (const note of notes) console.log(`\n${note}`)
console.log(`\ntests: ${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
process.exitCode = total.failed > 0 ? 1 : 0

async function runPass(pass: Pass): Promise<FileResult[]> {
  const results = await runFiles(pass)
  for (const [file, first] of Object.entries(results)) {
    if (first.failed === 0) continue
    const name = relative(process.cwd(), file)
    console.log(`\n${name} failed. It is run once more, alone.`)
    const again = (await runFiles({ ...pass, paths: [file], concurrency: 1 }))[file] ?? first
    results[file] = again
    const verdict = again.failed > 0 ? 'Failed twice' : 'Flaky, failed and then passed alone'
    notes.push(`${verdict}: ${name}. The first error:\n${indent(first.error ?? '')}`)
  }
  return Object.values(results)
}

async function runFiles({ paths, concurrency, env }: Pass): Promise<Results> {
  const record = join(scratch, 'record.json')
  rmSync(record, { force: true })
  const args = ['--import', END, '--test', `--test-timeout=${LIMIT_MS}`, `--test-concurrency=${concurrency}`]
  for (const [reporter, destination] of [
    ['spec', 'stdout'],
    [RECORD, record],
  ]) {
    args.push(`--test-reporter=${reporter}`, `--test-reporter-destination=${destination}`)
  }
  // In a process group of its own, so that an interrupt reaches what the tests started too.
  running = spawn(process.execPath, [...args, ...paths], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, ISLET_TEST_IMAGES: imagesDir, ...env },
    detached: true,
  })
  const [code, signal] = await once(running, 'exit')
  if (interrupted) await new Promise(() => {})
  const results = readRecord(record)
  if (Object.keys(results).length === 0) fail(`No test file was run: ${paths.join(' ')}`)
  else if (code !== 0 && Object.values(results).every(({ failed }) => failed === 0)) {
    fail(`node --test ended with ${signal ?? `code ${code}`}, but no test has failed: ${paths.join(' ')}`)
  }
  return results
}

function fail(note: string): void {
  notes.push(note)
  total.failed++
}

function readRecord(file: string): Results {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return {}
  }
}

function add(result: FileResult): void {
  total.passed += result.passed
  total.failed += result.failed
  total.skipped += result.skipped
}

async function interrupt(signal: NodeJS.Signals): Promise<void> {
  interrupted = true
  const deadline = Date.now() + END_MS
  for (let last: NodeJS.Signals = 'SIGTERM'; killGroup(last); await sleep(20)) {
    last = Date.now() > deadline ? 'SIGKILL' : 'SIGTERM'
  }
  rmSync(scratch, { recursive: true, force: true })
  process.exit(128 + constants.signals[signal])
}

/** Returns whether the process group of the tests still exists. */
function killGroup(signal: NodeJS.Signals): boolean {
  try {
    return running?.pid !== undefined && process.kill(-running.pid, signal)
  } catch {
    return false
  }
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ')
}
