// Errors that the client finds itself, before or after the server answers. All others are in the contract's table.
import { type ErrorCode, type ErrorSpec, IsletError, isErrorCode } from '@islet/contract/client'

export const CLIENT_ERRORS = {
  connection_failed: {
    status: 0,
    retryable: true,
    message: 'The Islet server could not be reached.',
    hint: 'Start one with islet serve, or set ISLET_URL to the address of a running one.',
  },
  bad_response: {
    status: 0,
    retryable: false,
    message: 'The answer is not from an Islet server.',
    hint: 'Check ISLET_URL, and that client and server have the same version.',
  },
  untrusted_server: {
    status: 0,
    retryable: false,
    message: 'The program at that address may not be your server, so the key was not sent.',
    hint: 'Unset ISLET_URL to use the socket of a server that islet serve started. A key in ISLET_API_KEY is sent without this check.',
  },
  invalid_url: {
    status: 0,
    retryable: false,
    message: 'The address of the server is not a URL.',
    hint: 'Use a URL like http://127.0.0.1:7400 or https://islet.example.com.',
  },
} as const satisfies Record<string, ErrorSpec>

export type ClientErrorCode = keyof typeof CLIENT_ERRORS
export type AnyErrorCode = ErrorCode | ClientErrorCode

/** An IsletError with a code of the client. Branch on `code`, as for any other. */
export class ClientError extends IsletError {
  constructor(code: ClientErrorCode, message?: string, options: { hint?: string; cause?: unknown } = {}) {
    const spec: ErrorSpec = CLIENT_ERRORS[code]
    super(code as unknown as ErrorCode, message ?? spec.message, {
      hint: options.hint ?? spec.hint ?? '',
      cause: options.cause,
    })
  }

  override get status(): number {
    return CLIENT_ERRORS[this.code as unknown as ClientErrorCode].status
  }

  override get retryable(): boolean {
    return CLIENT_ERRORS[this.code as unknown as ClientErrorCode].retryable
  }
}

/** `if (hasCode(error, 'file_not_found'))`: the way to branch on a caught error. */
export function hasCode(error: unknown, ...codes: AnyErrorCode[]): error is IsletError {
  return error instanceof IsletError && (codes as string[]).includes(error.code)
}

/** An error that the server sent. A code that this client does not know becomes `internal`. */
export function errorFromBody(error: WireError): IsletError {
  const { code, message, hint, details } = error
  if (isErrorCode(code)) return new IsletError(code, message, { hint, details })
  return new IsletError('internal', message, { hint, details: { ...details, code } })
}

export interface WireError {
  code: string
  message: string
  hint?: string
  details?: Record<string, unknown>
}

/** Settles with the work, or rejects when the signal aborts. */
export function untilAborted<T>(work: T | Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(abortError(signal))
    const release = () => signal.removeEventListener('abort', abort)
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    Promise.resolve(work).then(resolve, reject).finally(release)
  })
}

export function abortError(signal?: AbortSignal): DOMException {
  const error = new DOMException('The operation was aborted.', 'AbortError')
  if (signal?.reason !== undefined) Object.defineProperty(error, 'cause', { value: signal.reason })
  return error
}
