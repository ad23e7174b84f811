// What to run next after an error that comes without a hint of its own.
import type { AnyErrorCode } from '@islet/sdk'

type SystemCode = 'EACCES' | 'EADDRNOTAVAIL'

const HINTS: Partial<Record<AnyErrorCode | SystemCode, string>> = {
  EACCES: 'Run it as root, or choose a path or port (1024 and up) that is yours.',
  EADDRNOTAVAIL: 'islet serve --host 127.0.0.1 listens on this machine only; ip addr lists its addresses.',
  access_denied: 'islet exec --user root SANDBOX -- COMMAND runs as root in the sandbox.',
  bad_request: 'islet COMMAND --help says what is allowed.',
  checkpoint_not_found: 'islet checkpoint ls SANDBOX shows the ones there are.',
  command_not_executable: "islet exec SANDBOX 'ls -l PATH; file PATH' shows what it is.",
  command_not_found: "islet exec SANDBOX 'command -v NAME' looks for it; islet runtimes lists other images.",
  cwd_not_found: 'islet exec SANDBOX -- ls -la / shows what there is.',
  file_not_found: 'Check the path; islet exec SANDBOX -- ls -la DIRECTORY shows what is in a sandbox.',
  invalid_state: 'islet info SANDBOX and islet ps --all SANDBOX show how things are.',
  key_not_found: 'islet store ls SANDBOX lists the keys there are.',
  not_supported: 'islet doctor says what this machine can do.',
  process_not_found: 'islet ps --all SANDBOX shows the ones there are.',
  sandbox_disk_full:
    'islet update SANDBOX --disk SIZE gives it more; islet exec SANDBOX -- df -h shows what is full.',
  sandbox_lost: 'islet ls --all shows what became of it.',
  server_disk_full: 'islet image collect frees what nothing uses; islet rm removes sandboxes.',
  port_taken: 'islet ports SANDBOX shows who listens; without --strict-port the next free one is taken.',
  snapshot_damaged: 'islet snapshot export SNAPSHOT FILE writes it anew.',
  snapshot_not_found: 'islet snapshot ls shows the ones there are.',
  service_not_found: 'islet service ls SANDBOX shows the ones there are.',
  user_not_found: 'islet exec SANDBOX -- cat /etc/passwd lists the users.',
}

const FALLBACK = 'islet --help lists the commands; islet doctor checks this machine.'

export function hintFor(code: string): string {
  return HINTS[code as AnyErrorCode] ?? FALLBACK
}
