/** What was typed cannot be meant. Ends with exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError'
  readonly code = 'usage'
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.hint = hint
  }
}

/** Something of this machine or of the typed paths is in the way. Ends with exit code 1 (125 in run, exec, code and sh). */
export class CliError extends Error {
  override name = 'CliError'
  readonly code: string
  readonly hint: string

  constructor(code: string, message: string, options: { hint: string; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.code = code
    this.hint = options.hint
  }
}
