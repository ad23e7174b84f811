import type { Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { withSandbox } from '../../args/find.ts'
import { duration } from '../../args/parse.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { printResult } from '../../output.ts'

interface UrlFlags extends JsonFlag {
  upload?: true
  expires?: number
}

export function url(): Command {
  return sandboxCommand(
    'url',
    'Print a URL that downloads or uploads one file without a key, until it expires.',
    'curl -OJ "$(islet url dev report.pdf --expires 10m)"\ncurl -T data.csv "$(islet url dev data.csv --upload)"',
  )
    .argument('<file>', 'path in the sandbox, relative to its working directory')
    .option('--upload', 'upload with PUT; default: download with GET')
    .option('--expires <duration>', 'how long it is valid, 1s to 7d; default: 1h', duration)
    .action(
      withSandbox(async ({ files }: Sandbox, path: string, flags: UrlFlags) => {
        const options = { expiresIn: flags.expires }
        const signed = await (flags.upload
          ? files.uploadUrl(path, options)
          : files.downloadUrl(path, options))
        printResult({ url: signed, method: flags.upload ? 'PUT' : 'GET' }, signed, flags)
      }),
    )
}
