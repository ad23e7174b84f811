import type { Command } from 'commander'
import { duration } from '../args/parse.ts'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { print, printJson } from '../output.ts'

interface UrlFlags extends JsonFlag {
  upload?: true
  expires?: number
}

export function url(): Command {
  return command(
    'url',
    'Print a URL that downloads or uploads one file without a key, for a while.',
    'curl -OJ "$(islet url dev report.pdf --expires 10m)"\ncurl -T data.csv "$(islet url dev data.csv --upload)"',
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<file>', 'in the sandbox, relative to its working directory')
    .option('--upload', 'for PUT, and not for GET')
    .option('--expires <duration>', 'how long it works: 1s to 7d; default: 1h', duration)
    .action(async (text: string, path: string, flags: UrlFlags) => {
      const { files } = await findSandbox(connect(), text)
      const options = { expiresIn: flags.expires }
      const signed = await (flags.upload ? files.uploadUrl(path, options) : files.downloadUrl(path, options))
      if (flags.json) printJson({ url: signed, method: flags.upload ? 'PUT' : 'GET' })
      else print(signed)
    })
}
