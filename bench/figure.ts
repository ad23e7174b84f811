import type { Sandbox } from 'islet'
import type { TestServer } from '../tests/support/server.ts'
import type { Docker } from './docker.ts'
import type { Samples } from './measure.ts'

/** One row of the board. */
export interface Row {
  figure: string
  /** Undefined when this run has nothing to compare with. */
  docker?: Samples | number
  islet: Samples | number
  unit: string
  note?: string
}

export interface BenchContext {
  server: TestServer
  create(): Promise<Sandbox>
  /** Present with --docker. */
  docker?: Docker
  /** Fewer samples, to try the bench itself. */
  quick: boolean
}

export type Figure = (context: BenchContext) => Promise<Row[]>
