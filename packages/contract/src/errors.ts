// All errors that a caller can get, in one table. Branch on `code`, never on the class or the text.

export interface ErrorSpec {
  status: number
  /** Whether the same call may succeed later without a change. */
  retryable: boolean
  message: string
  hint?: string
}

export const ERRORS = {
  bad_request: { status: 400, retryable: false, message: 'The request is not valid.' },
  limit_too_high: {
    status: 400,
    retryable: false,
    message: 'A limit is larger than what this server allows.',
    hint: 'GET /v1/info says what the machine has.',
  },
  invalid_json: {
    status: 400,
    retryable: false,
    message: 'The body is not valid JSON.',
    hint: 'Send a JSON object with Content-Type: application/json.',
  },
  invalid_path: {
    status: 400,
    retryable: false,
    message: 'The path is not valid.',
    hint: 'Paths are non-empty, at most 4095 bytes and without NUL.',
  },
  invalid_header: { status: 400, retryable: false, message: 'A header is not valid.' },
  unauthorized: {
    status: 401,
    retryable: false,
    message: 'The API key or token is missing or wrong.',
    hint: 'Send Authorization: Bearer <key>; the key is in <data directory>/key.',
  },
  token_expired: {
    status: 401,
    retryable: false,
    message: 'The token has expired.',
    hint: 'The holder of the API key can make another one: POST /v1/sandboxes/{id}/token, or /tokens for one that lasts longer.',
  },
  forbidden: { status: 403, retryable: false, message: 'This key or token may not do that.' },
  route_not_found: {
    status: 404,
    retryable: false,
    message: 'There is no such route.',
    hint: 'GET /openapi.json lists them all.',
  },
  sandbox_not_found: {
    status: 404,
    retryable: false,
    message: 'There is no such sandbox.',
    hint: 'islet ls lists them.',
  },
  process_not_found: { status: 404, retryable: false, message: 'There is no such process.' },
  runtime_not_found: {
    status: 404,
    retryable: false,
    message: 'There is no such runtime.',
    hint: 'GET /v1/runtimes, or islet runtimes, lists the names.',
  },
  image_not_found: {
    status: 404,
    retryable: false,
    message: 'There is no such image.',
    hint: 'islet image ls lists them.',
  },
  terminal_not_found: { status: 404, retryable: false, message: 'There is no such terminal.' },
  watcher_not_found: { status: 404, retryable: false, message: 'There is no such watcher.' },
  overlay_not_found: { status: 404, retryable: false, message: 'There is no such overlay.' },
  service_not_found: { status: 404, retryable: false, message: 'There is no such service.' },
  preview_not_found: {
    status: 404,
    retryable: false,
    message: 'There is no such preview.',
    hint: 'islet preview ls SANDBOX lists them.',
  },
  checkpoint_not_found: {
    status: 404,
    retryable: false,
    message: 'There is no such checkpoint.',
    hint: 'islet checkpoint ls SANDBOX lists them.',
  },
  snapshot_not_found: {
    status: 404,
    retryable: false,
    message: 'There is no such snapshot.',
    hint: 'islet snapshot ls lists them.',
  },
  patch_not_found: {
    status: 404,
    retryable: false,
    message: 'The checkpoint has no such patch.',
    hint: 'islet checkpoint patch ls CHECKPOINT lists them.',
  },
  token_not_found: {
    status: 404,
    retryable: false,
    message: 'The sandbox has no such session token.',
    hint: 'islet token ls SANDBOX lists them.',
  },
  link_not_found: {
    status: 404,
    retryable: false,
    message: 'There is no such magic link.',
    hint: 'islet link SANDBOX makes a new one.',
  },
  link_used_up: {
    status: 410,
    retryable: false,
    message: 'This magic link was used already, or is older than five minutes.',
    hint: 'islet link SANDBOX makes a new one.',
  },
  key_not_found: { status: 404, retryable: false, message: 'The store has no such key, or it has expired.' },
  file_not_found: { status: 404, retryable: false, message: 'There is no such file or directory.' },
  method_not_allowed: { status: 405, retryable: false, message: 'This route does not take that method.' },
  request_timeout: { status: 408, retryable: true, message: 'The request did not arrive in time.' },
  conflict: { status: 409, retryable: false, message: 'The request conflicts with something that exists.' },
  file_exists: {
    status: 409,
    retryable: false,
    message: 'Something exists at that path already.',
    hint: 'Remove it first; copies and moves can also overwrite it.',
  },
  invalid_state: {
    status: 409,
    retryable: false,
    message: 'The sandbox is not in a state that allows this.',
  },
  state_damaged: {
    status: 410,
    retryable: false,
    message: 'Files of this checkpoint or snapshot are missing on the disk of the server.',
    hint: 'It cannot be restored any more: delete it.',
  },
  output_gone: {
    status: 410,
    retryable: false,
    message: 'The output of this process is not kept any more.',
    hint: 'The end of an output is kept while its sandbox exists and for an hour after, within the limits of the server.',
  },
  name_taken: {
    status: 409,
    retryable: false,
    message: 'Another sandbox has this name.',
    hint: 'Sandbox.getOrCreate(name) and islet create --reuse --name NAME return that sandbox. The name is free again when it is stopped.',
  },
  idempotency_mismatch: {
    status: 409,
    retryable: false,
    message: 'This Idempotency-Key was used with another request.',
  },
  idempotency_running: {
    status: 409,
    retryable: true,
    message: 'The first request with this Idempotency-Key is still running.',
  },
  image_in_use: {
    status: 409,
    retryable: false,
    message: 'A sandbox or snapshot uses this image.',
    hint: 'Delete what uses it first.',
  },
  runtime_not_ready: {
    status: 409,
    retryable: false,
    message: 'The image of this runtime is not on this machine, and cannot be made again.',
    hint: 'Import or pull it again: islet image import, islet image pull.',
  },
  not_a_directory: { status: 409, retryable: false, message: 'A part of the path is not a directory.' },
  io_error: {
    status: 409,
    retryable: false,
    message: 'The kernel of the sandbox reported an I/O error.',
    hint: 'Some files of /proc and /sys cannot be read or written; for other files, look at the disk of the machine.',
  },
  is_a_directory: { status: 409, retryable: false, message: 'The path is a directory.' },
  directory_not_empty: {
    status: 409,
    retryable: false,
    message: 'The directory is not empty.',
    hint: 'Pass recursive to remove what is in it.',
  },
  body_too_large: {
    status: 413,
    retryable: false,
    message: 'The body is too large.',
    hint: 'Send large content through PUT /v1/sandboxes/{id}/files.',
  },
  range_not_satisfiable: { status: 416, retryable: false, message: 'The range is outside the file.' },
  interpreter_not_found: {
    status: 422,
    retryable: false,
    message: 'The sandbox has no interpreter for this language.',
    hint: 'Choose a runtime that has it; GET /v1/runtimes lists them.',
  },
  packages_failed: {
    status: 422,
    retryable: false,
    message: 'The packages could not be installed.',
    hint: 'The details have the end of the output of the installer.',
  },
  port_taken: {
    status: 409,
    retryable: false,
    message: 'Something listens on that port already.',
    hint: 'Choose another port, or leave strictPort out.',
  },
  port_not_listening: {
    status: 422,
    retryable: false,
    message: 'Nothing listens on that port of the sandbox.',
  },
  user_not_found: { status: 422, retryable: false, message: 'There is no such user in the sandbox.' },
  cwd_not_found: {
    status: 422,
    retryable: false,
    message: 'The working directory does not exist in the sandbox.',
  },
  command_not_found: { status: 422, retryable: false, message: 'The command was not found in the sandbox.' },
  command_not_executable: { status: 422, retryable: false, message: 'The command cannot be executed.' },
  access_denied: { status: 422, retryable: false, message: 'The sandbox denied access.' },
  not_a_file: { status: 422, retryable: false, message: 'The path is not a regular file.' },
  too_many_requests: {
    status: 429,
    retryable: true,
    message: 'Too many requests or operations at once.',
    hint: 'Wait for some of them to end.',
  },
  limit_exceeded: { status: 429, retryable: true, message: 'A limit of the sandbox is reached.' },
  headers_too_large: {
    status: 431,
    retryable: false,
    message: 'The address and headers of the request are too large.',
  },
  internal: {
    status: 500,
    retryable: true,
    message: 'Something went wrong in the server.',
    hint: 'The log has the request id.',
  },
  snapshot_damaged: {
    status: 422,
    retryable: false,
    message: 'The file is not a whole snapshot.',
    hint: 'Export it again, and compare the two files.',
  },
  not_supported: { status: 501, retryable: false, message: 'This machine or engine cannot do that.' },
  sandbox_lost: { status: 502, retryable: false, message: 'The sandbox ended while the call was running.' },
  preview_failed: {
    status: 502,
    retryable: true,
    message: 'The program on that port did not answer with valid HTTP.',
  },
  registry_unavailable: {
    status: 502,
    retryable: true,
    message: 'The image registry did not give the image.',
    hint: 'Check the reference and the network, then try again.',
  },
  draining: { status: 503, retryable: true, message: 'The server is shutting down.' },
  engine_unavailable: {
    status: 503,
    retryable: true,
    message: 'The engine could not start a sandbox.',
    hint: 'islet doctor says what is wrong.',
  },
  timeout: { status: 504, retryable: true, message: 'The operation took too long.' },
  sandbox_disk_full: { status: 507, retryable: false, message: 'The disk of the sandbox is full.' },
  disk_low: {
    status: 507,
    retryable: true,
    message: 'The disk of the server is low.',
    hint: 'Delete sandboxes, checkpoints or snapshots that are not needed, or prune: POST /v1/prune. Deleting always works.',
  },
  server_disk_full: { status: 507, retryable: true, message: 'The disk of the server is full.' },
} as const satisfies Record<string, ErrorSpec>

export type ErrorCode = keyof typeof ERRORS

/** The one error class: thrown by the server's services, sent as `ErrorBody`, thrown again by the SDK. */
export class IsletError extends Error {
  override name = 'IsletError'
  readonly code: ErrorCode
  readonly hint: string | undefined
  readonly details: Record<string, unknown> | undefined

  constructor(
    code: ErrorCode,
    message?: string,
    options: { hint?: string; details?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    const spec: ErrorSpec = ERRORS[code]
    super(message ?? spec.message, { cause: options.cause })
    this.code = code
    this.hint = options.hint ?? spec.hint
    this.details = options.details
  }

  get status(): number {
    return ERRORS[this.code].status
  }

  get retryable(): boolean {
    return ERRORS[this.code].retryable
  }

  toBody(): ErrorBody {
    const { code, message, hint, retryable, details } = this
    return { error: { code, message, ...(hint && { hint }), retryable, ...(details && { details }) } }
  }
}

export interface ErrorBody {
  error: {
    code: ErrorCode
    message: string
    hint?: string
    retryable: boolean
    details?: Record<string, unknown>
  }
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERRORS, value)
}
