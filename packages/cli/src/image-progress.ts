import type { ImageInfo, ImageStep } from '@islet/sdk'
import type { JsonFlag } from './command.ts'
import { clearStatus, print, printJson, showStatus } from './output.ts'
import { clean } from './table.ts'

const BAR_WIDTH = 24
const REDRAW_MS = 100

/** The step an image is at, in one line of the terminal; nothing in a pipe. */
export class StepLine implements Disposable {
  #drawnAt = 0
  #stage = ''

  show = (step: ImageStep): void => {
    const isSameStage = step.stage === this.#stage
    if (isSameStage && Date.now() - this.#drawnAt < REDRAW_MS) return
    this.#drawnAt = Date.now()
    this.#stage = step.stage
    showStatus(formatStep(step))
  };

  [Symbol.dispose](): void {
    clearStatus()
  }
}

export function formatStep({ stage, message, fraction }: ImageStep): string {
  return `${stage.padEnd(8)} ${fraction === undefined ? '' : `${bar(fraction)} `}${clean(message)}`
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
