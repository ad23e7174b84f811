// Pieces of code, run by the interpreter of their language.
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Processes } from '../processes.ts'

export interface CodeRunnerOptions {
  sandboxes: Sandboxes
  processes: Processes
}

export class CodeRunner {
  readonly #options: CodeRunnerOptions

  constructor(options: CodeRunnerOptions) {
    this.#options = options
  }
}
