// A reporter for node --test that prints the result of each test file, as one JSON object at the end.
import { resolve } from 'node:path'
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'

export interface FileResult {
  passed: number
  failed: number
  skipped: number
  /** The name and error of the first test that failed. */
  error?: string
}

/** By absolute path. */
export type Results = Record<string, FileResult>

type Outcome = Extract<TestEvent, { type: 'test:pass' | 'test:fail' }>

const ERROR_LINES = 30

export default async function* record(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const results: Results = {}
  const complaints = new Map<string, string[]>()
  for await (const event of events) {
    if (isComplaint(event)) keep(complaints, fileOf(event.data), event.data.message.trimEnd())
    else if (event.type === 'test:pass' || event.type === 'test:fail') count(results, complaints, event)
  }
  yield JSON.stringify(results)
}

/** A file that crashed says why on stderr, or Node does in a diagnostic. */
function isComplaint(
  event: TestEvent,
): event is Extract<TestEvent, { type: 'test:stderr' | 'test:diagnostic' }> {
  if (event.type === 'test:stderr') return true
  return event.type === 'test:diagnostic' && event.data.message.startsWith('Error: ')
}

function count(results: Results, complaints: ReadonlyMap<string, string[]>, { type, data }: Outcome): void {
  const file = fileOf(data)
  results[file] ??= { passed: 0, failed: 0, skipped: 0 }
  const result = results[file]
  const { error, type: kind } = data.details as { error?: Error; type?: string }
  // Node reports a file as a test if it crashed or has no tests.
  const isFile = resolve(data.name) === file
  if (kind === 'suite' && (error as { failureType?: string })?.failureType === 'subtestsFailed') return
  if (data.skip || data.todo) {
    if (kind !== 'suite') result.skipped++
  } else if (type === 'test:fail') {
    result.failed++
    const said = isFile && typeof error?.cause === 'string' && complaints.get(file)?.join('\n')
    result.error ??= `${data.name}\n${said || describe(error)}`
  } else if (isFile) {
    result.failed++
    result.error ??= 'There is no test in this file.'
  } else if (kind !== 'suite') {
    result.passed++
  }
}

/** The test file that was run. `file` is where a test is written down, which may be a suite that several test files share. */
function fileOf(data: { file?: string; entryFile?: string; name?: string }): string {
  return resolve(data.entryFile ?? data.file ?? data.name ?? '')
}

function describe(error: Error | undefined): string {
  const cause = error?.cause ?? error
  const text = typeof cause === 'string' ? cause : inspect(cause)
  return text.split('\n').slice(0, ERROR_LINES).join('\n')
}

function keep(complaints: Map<string, string[]>, file: string, line: string): void {
  const lines = [...(complaints.get(file) ?? []), line]
  complaints.set(file, lines.slice(-ERROR_LINES))
}
