// Hints for errors that have none of their own, or only the general one that names HTTP requests.
import { ERRORS, type ErrorSpec } from '@islet/contract/client'
import type { AnyErrorCode } from '@islet/sdk'

type SystemCode = 'EACCES' | 'EADDRNOTAVAIL'

const HINTS: Partial<Record<AnyErrorCode | SystemCode, string>> = {
  EACCES: 'Run it as root, or choose a path or port (1024 and up) that you may use.',
  EADDRNOTAVAIL: 'islet serve --host 127.0.0.1 listens on this machine only; ip addr lists its addresses.',
  access_denied: 'islet exec --user root SANDBOX -- COMMAND runs as root in the sandbox.',
  body_too_large: 'islet cp FILE SANDBOX:PATH takes content of any size.',
  bad_request: 'islet COMMAND --help shows what is allowed.',
  checkpoint_not_found: 'islet checkpoint ls lists the checkpoints.',
  command_not_executable: "islet exec SANDBOX 'ls -l PATH; file PATH' shows what it is.",
  command_not_found: "islet exec SANDBOX 'command -v NAME' looks for it; islet runtimes lists other images.",
  cwd_not_found: 'islet exec SANDBOX -- ls -la / lists the directories.',
  disk_low: 'islet rm, islet checkpoint rm and islet prune free space; islet ls --all lists the sandboxes.',
  file_not_found: 'Check the path; islet exec SANDBOX -- ls -la DIRECTORY lists files of a sandbox.',
  interpreter_not_found:
    'islet create --runtime NAME chooses a runtime that has it; islet runtimes lists them.',
  invalid_json: 'islet version shows whether this command and the server have the same version.',
  invalid_state: 'islet info SANDBOX and islet ps --all SANDBOX show the current state.',
  key_not_found: 'islet store ls SANDBOX lists the keys.',
  limit_too_high: 'Ask for less with --memory, --cpu, --disk or --pids.',
  not_supported: 'islet doctor shows what this machine supports.',
  process_not_found: 'islet ps --all SANDBOX lists the processes.',
  route_not_found: 'islet version shows whether this command and the server have the same version.',
  runtime_not_found: 'islet runtimes lists the names.',
  sandbox_disk_full:
    'islet update SANDBOX --disk SIZE raises the limit; islet exec SANDBOX -- df -h shows what is full.',
  sandbox_lost: 'islet ls --all shows its status.',
  server_disk_full: 'islet prune removes unused data; islet rm removes sandboxes.',
  port_taken:
    'islet ports SANDBOX shows which process listens; without --strict-port the next free port is used.',
  snapshot_damaged: 'islet snapshot export SNAPSHOT FILE writes the file again.',
  snapshot_not_found: 'islet snapshot ls lists the snapshots.',
  service_not_found: 'islet service ls SANDBOX lists the services.',
  token_expired: 'islet token SANDBOX prints a new one.',
  unauthorized:
    "Set ISLET_API_KEY to the server's key, or ISLET_DATA_DIR to its data directory, which has the key in the file key. " +
    'If root started the server on this machine: sudo usermod -aG islet USER, then log in again.',
  user_not_found: 'islet exec SANDBOX -- cat /etc/passwd lists the users.',
}

const FALLBACK = 'islet --help lists the commands; islet doctor checks this machine.'

/** `given` is the hint of the error. If it is only the general hint of its code, ours is better. */
export function hintFor(code: string, given?: string): string {
  const usual = (ERRORS as Record<string, ErrorSpec | undefined>)[code]?.hint
  if (given && given !== usual) return given
  return HINTS[code as AnyErrorCode] ?? usual ?? FALLBACK
}
