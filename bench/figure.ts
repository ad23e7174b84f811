// A figure: the function that measures it, and a description of how.
import type { Verdict } from './budgets.ts'
import type { Docker } from './docker.ts'
import type { Floor } from './floor/floor.ts'
import type { Samples } from './measure.ts'

/** One row of the board. */
export interface Row {
  /** Identifies the row in results, budgets and plots, so that its text can change. */
  id: string
  figure: string
  unit: string
  islet: Samples | number
  /** Undefined if Docker was not measured. */
  docker?: Samples | number
  /** The minimum that the machine needs for the same work. */
  floor?: Samples | number
  /** Explains what it is compared with, or anything else. */
  note?: string
  /** The times at 0 … 100 percent, if a plot shows them. */
  curve?: number[]
  /** The points of the plot, if the figure is the slope of a line through them. */
  points?: [number, number][]
  budgets?: Verdict[]
}

export interface BenchContext {
  floor: Floor
  /** Present with --docker. */
  docker?: Docker
  /** Fewer samples, to try the bench itself. */
  quick: boolean
}

export interface Figure {
  method: string
  measure(context: BenchContext): Promise<Row[]>
}

/** p50 of samples, or the one number. */
export function middle(value: Samples | number): number {
  return typeof value === 'number' ? value : value.p50
}
