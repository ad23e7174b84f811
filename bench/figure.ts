// What a figure is: how it is taken, in words, and the function that takes it.
import type { Verdict } from './budgets.ts'
import type { Docker } from './docker.ts'
import type { Floor } from './floor/floor.ts'
import type { Samples } from './measure.ts'

/** One row of the board. */
export interface Row {
  /** Names it in the results, the budgets and the plots, whatever its words are. */
  id: string
  figure: string
  unit: string
  islet: Samples | number
  /** Undefined when this run has nothing to compare with. */
  docker?: Samples | number
  /** The least that the machine needs for the same. */
  floor?: Samples | number
  /** What the others are, or what to know. */
  note?: string
  /** The times at 0 … 100 percent, where a plot shows them. */
  curve?: number[]
  /** Points of a plot, of a figure that is the line through them. */
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
