// Loaded before every test file: a file fails if no test begins in it, or if it does not end after its last test. Node's time limit
// covers only tests; a server or timer that a test left open would keep the process running for ever.
import { after, beforeEach } from 'node:test'

/** Time to set up before the first test. */
const BEGIN_MS = Number(process.env.TEST_BEGIN_MS ?? 300_000)
/** Includes the `after` hooks of the file. */
const END_MS = Number(process.env.TEST_END_MS ?? 60_000)

// Not in programs that a test file starts.
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
