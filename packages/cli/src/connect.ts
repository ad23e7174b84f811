// The server that commands speak to, and the one that `run` makes for itself when there is none.
import { type ClientOptions, hasCode, Islet } from '@islet/sdk'
import { ensureSetup } from './setup.ts'

export function connect(options: ClientOptions = {}): Islet {
  return new Islet(options)
}

export interface Host extends AsyncDisposable {
  islet: Islet
  embedded: boolean
}

export async function connectOrEmbed(): Promise<Host> {
  const islet = connect()
  if (process.env.ISLET_URL || (await answers())) {
    return { islet, embedded: false, [Symbol.asyncDispose]: async () => {} }
  }
  await ensureSetup()
  const { startEphemeral } = await import('@islet/server')
  const server = await startEphemeral()
  return {
    islet: connect({ url: server.url, apiKey: server.key }),
    embedded: true,
    [Symbol.asyncDispose]: () => server.close(),
  }
}

/** Whether there is a server at the default address. */
async function answers(): Promise<boolean> {
  try {
    await connect({ retries: 0 }).health()
    return true
  } catch (error) {
    if (hasCode(error, 'connection_failed')) return false
    throw error
  }
}
