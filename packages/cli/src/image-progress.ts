import type { ImageInfo, ImageStep } from '@islet/sdk'
import type { JsonFlag } from './command.ts'
import { print, printJson } from './output.ts'
import { clean } from './table.ts'

const BAR_WIDTH = 24
const REDRAW_MS = 100

/** The step an image is at, in one line of the terminal; nothing in a pipe. */
export class StepLine implements Disposable {
  #drawnAt = 0
  #stage = ''

  show = (step: ImageStep): void => {
    if (!process.stderr.isTTY) return
    const isSameStage = step.stage === this.#stage
    if (isSameStage && Date.now() - this.#drawnAt < REDRAW_MS) return
    this.#drawnAt = Date.now()
    this.#stage = step.stage
    process.stderr.write(`\r\x1b[K${formatStep(step, process.stderr.columns || 80)}`)
  };

  [Symbol.dispose](): void {
    if (this.#drawnAt > 0) process.stderr.write('\r\x1b[K')
  }
}

export function formatStep({ stage, message, fraction }: ImageStep, columns: number): string {
  const text = `${stage.padEnd(8)} ${fraction === undefined ? '' : `${bar(fraction)} `}${clean(message)}`
  return text.length < columns ? text : `${text.slice(0, columns - 2)}…`
}

export function reportImage(image: ImageInfo, { json }: JsonFlag): void {
  if (json) printJson(image)
  else print(image.name)
}

function bar(fraction: number): string {
  const share = Math.min(1, Math.max(0, fraction))
  const full = Math.round(share * BAR_WIDTH)
  return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)} ${String(Math.floor(share * 100)).padStart(3)}%`
}
