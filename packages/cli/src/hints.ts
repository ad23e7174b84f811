// What to run next after an error that comes without a hint of its own, or with one that speaks of HTTP.
import { ERRORS, type ErrorSpec } from '@islet/contract/client'
import type { AnyErrorCode } from '@islet/sdk'

type SystemCode = 'EACCES' | 'EADDRNOTAVAIL'

const HINTS: Partial<Record<AnyErrorCode | SystemCode, string>> = {
  EACCES: 'Run it as root, or choose a path or port (1024 and up) that is yours.',
  EADDRNOTAVAIL: 'islet serve --host 127.0.0.1 listens on this machine only; ip addr lists its addresses.',
  access_denied: 'islet exec --user root SANDBOX -- COMMAND runs as root in the sandbox.',
  body_too_large: 'islet cp FILE SANDBOX:PATH takes content of any size.',
  bad_request: 'islet COMMAND --help says what is allowed.',
  checkpoint_not_found: 'islet checkpoint ls shows the ones there are.',
  command_not_executable: "islet exec SANDBOX 'ls -l PATH; file PATH' shows what it is.",
  command_not_found: "islet exec SANDBOX 'command -v NAME' looks for it; islet runtimes lists other images.",
  cwd_not_found: 'islet exec SANDBOX -- ls -la / shows what there is.',
  disk_low: 'islet rm, islet checkpoint rm and islet prune make room; islet ls --all shows what there is.',
  file_not_found: 'Check the path; islet exec SANDBOX -- ls -la DIRECTORY shows what is in a sandbox.',
  interpreter_not_found: 'islet create --runtime NAME chooses one that has it; islet runtimes lists them.',
  invalid_json: 'islet version shows whether this command and the server have the same version.',
  invalid_state: 'islet info SANDBOX and islet ps --all SANDBOX show how things are.',
  key_not_found: 'islet store ls SANDBOX lists the keys there are.',
  limit_too_high: 'Ask for less with --memory, --cpu, --disk or --pids.',
  not_supported: 'islet doctor says what this machine can do.',
  process_not_found: 'islet ps --all SANDBOX shows the ones there are.',
  route_not_found: 'islet version shows whether this command and the server have the same version.',
  runtime_not_found: 'islet runtimes lists the names.',
  sandbox_disk_full:
    'islet update SANDBOX --disk SIZE gives it more; islet exec SANDBOX -- df -h shows what is full.',
  sandbox_lost: 'islet ls --all shows what became of it.',
  server_disk_full: 'islet prune frees what nothing uses; islet rm removes sandboxes.',
  port_taken: 'islet ports SANDBOX shows who listens; without --strict-port the next free one is taken.',
  snapshot_damaged: 'islet snapshot export SNAPSHOT FILE writes it anew.',
  snapshot_not_found: 'islet snapshot ls shows the ones there are.',
  service_not_found: 'islet service ls SANDBOX shows the ones there are.',
  token_expired: 'islet token SANDBOX prints a new one.',
  unauthorized:
    "Set ISLET_API_KEY to the server's key, or ISLET_DATA_DIR to its data directory, where the file key holds it. " +
    'If root started the server on this machine: sudo usermod -aG islet USER, then log in again.',
  user_not_found: 'islet exec SANDBOX -- cat /etc/passwd lists the users.',
}

const FALLBACK = 'islet --help lists the commands; islet doctor checks this machine.'

/** `given` is the hint that the error has; one that only repeats the table of errors gives way to ours. */
export function hintFor(code: string, given?: string): string {
  const usual = (ERRORS as Record<string, ErrorSpec | undefined>)[code]?.hint
  if (given && given !== usual) return given
  return HINTS[code as AnyErrorCode] ?? usual ?? FALLBACK
}
