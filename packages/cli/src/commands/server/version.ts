import { hasCode } from '@islet/sdk'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { print, printJson } from '../../output.ts'
import { VERSION } from '../../version.ts'

export function version(): Command {
  return command('version', 'Print the versions of this program and of the server.', 'islet version').action(
    async (flags: JsonFlag) => {
      const server = await serverVersion()
      if (flags.json) return printJson({ cli: VERSION, server })
      print(`islet ${VERSION}`)
      print(`server ${server ?? '- (no answer)'}`)
    },
  )
}

async function serverVersion(): Promise<string | null> {
  try {
    return (await connect({ retries: 0 }).health()).version
  } catch (error) {
    if (hasCode(error, 'connection_failed', 'bad_response')) return null
    throw error
  }
}
