// Loaded before every test file: a file in which no test begins, or that does not end after its last test, fails. The time limit
// of Node is for tests only; a server or a timer that one of them left keeps the process, and all that wait for it, for ever.
import { after, beforeEach } from 'node:test'

/** Time to set up before the first test. */
const BEGIN_MS = Number(process.env.TEST_BEGIN_MS ?? 300_000)
/** The `after` hooks of the file itself need some of it. */
const END_MS = Number(process.env.TEST_END_MS ?? 60_000)

// Not in programs that a test file starts in turn with its own arguments.
if (process.env.NODE_TEST_CONTEXT && process.argv[1]?.endsWith('.test.ts')) {
  const beginning = failAfter(BEGIN_MS, 'No test has begun')
  beforeEach(() => clearTimeout(beginning))
  after(() => {
    clearTimeout(beginning)
    failAfter(END_MS, 'All tests are over, but the process is not')
  })
}

function failAfter(ms: number, what: string): NodeJS.Timeout {
  const fail = () => {
    console.error(
      `${process.argv[1]}: ${what}. What keeps it: ${process.getActiveResourcesInfo().join(', ')}`,
    )
    process.exit(1)
  }
  return setTimeout(fail, ms).unref()
}
