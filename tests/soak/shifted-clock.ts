// Preloaded into a server (NODE_OPTIONS=--import): its time of day is off by the milliseconds in the file ISLET_TEST_CLOCK, which is
// read again all the time. Its monotonic clock goes on as it did, and nobody else on the machine notices.
import { readFileSync } from 'node:fs'

const LOOK_MS = 50
const file = process.env.ISLET_TEST_CLOCK

if (file) {
  const RealDate = Date
  let offsetMs = read(file)
  setInterval(() => {
    offsetMs = read(file)
  }, LOOK_MS).unref()
  const now = (): number => RealDate.now() + offsetMs
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new RealDate(now()).toString(),
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  })
}

function read(path: string): number {
  try {
    return Number(readFileSync(path, 'utf8')) || 0
  } catch {
    return 0
  }
}
