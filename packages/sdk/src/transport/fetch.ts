// Node's fetch gives up when an answer takes five minutes to begin; a command may take longer. Its agent class is not
// importable, but the global agent is reachable once fetch was used, and so is its class.
type Fetch = typeof globalThis.fetch
type Dispatcher = { constructor: new (options: object) => object }

const GLOBAL_DISPATCHER = Symbol.for('undici.globalDispatcher.1')

let patient: Promise<object | undefined> | undefined

/** The platform's fetch, without its time limits where it has some. */
export const patientFetch: Fetch = async (input, init) => {
  patient ??= makePatientDispatcher()
  const dispatcher = await patient
  // Bun's name for the same thing is `timeout`.
  return globalThis.fetch(input, {
    ...init,
    timeout: false,
    ...(dispatcher && { dispatcher }),
  } as RequestInit)
}

async function makePatientDispatcher(): Promise<object | undefined> {
  if (!(globalThis as { process?: { versions?: { undici?: string } } }).process?.versions?.undici)
    return undefined
  try {
    await globalThis.fetch('data:,')
    const standard = (globalThis as Record<symbol, unknown>)[GLOBAL_DISPATCHER] as Dispatcher | undefined
    return standard && new standard.constructor({ headersTimeout: 0, bodyTimeout: 0 })
  } catch {
    return undefined
  }
}
