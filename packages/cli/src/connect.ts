// The server that commands call. `run` starts one in this process if none answers.
import { type ClientOptions, hasCode, Islet } from '@islet/sdk'
import { ensureSetup } from './setup.ts'

export function connect(options: ClientOptions = {}): Islet {
  return new Islet(options)
}

export interface Connection extends AsyncDisposable {
  islet: Islet
}

export async function connectOrEmbed(): Promise<Connection> {
  const islet = connect()
  if (process.env.ISLET_URL || (await answers())) {
    return { islet, [Symbol.asyncDispose]: async () => {} }
  }
  await ensureSetup()
  const { startEphemeral } = await import('@islet/server')
  const server = await startEphemeral()
  return {
    islet: connect({ url: server.url, apiKey: server.key }),
    [Symbol.asyncDispose]: () => server.close(),
  }
}

/** Whether a server answers at the default address. */
async function answers(): Promise<boolean> {
  try {
    await connect({ retries: 0 }).health()
    return true
  } catch (error) {
    if (hasCode(error, 'connection_failed')) return false
    throw error
  }
}
