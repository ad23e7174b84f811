/** The words on the command line are wrong. Ends with exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError'
  readonly code = 'usage'
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.hint = hint
  }
}

/** Something on this machine, or a given path, prevents the work. Ends with exit code 1 (125 in run, exec, code and sh). */
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
