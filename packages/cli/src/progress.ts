// Progress of transfers and image builds, in one line of the terminal.
import type { ImageStep } from '@islet/sdk'
import { clean, formatBytes } from './format.ts'
import { clearStatus, showStatus } from './output.ts'

const BAR_WIDTH = 24
const REDRAW_MS = 100

/** Passes `source` on and shows how much of it has passed. */
export async function* withProgress(
  source: AsyncIterable<Uint8Array>,
  label: string,
  totalBytes?: number,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  let drawnAt = 0
  try {
    for await (const part of source) {
      bytes += part.byteLength
      if (Date.now() - drawnAt >= REDRAW_MS) {
        drawnAt = Date.now()
        showStatus(`${clean(label)} ${formatBytes(bytes)}${share(bytes, totalBytes)}`)
      }
      yield part
    }
  } finally {
    clearStatus()
  }
}

/** For `onProgress` of calls that make an image. A new stage is shown at once. */
export function showImageSteps(): (step: ImageStep) => void {
  let drawnAt = 0
  let shown = ''
  return ({ stage, message, fraction }) => {
    if (stage === shown && Date.now() - drawnAt < REDRAW_MS) return
    drawnAt = Date.now()
    shown = stage
    showStatus(`${stage.padEnd(8)} ${fraction === undefined ? '' : `${bar(fraction)} `}${clean(message)}`)
  }
}

function share(bytes: number, totalBytes: number | undefined): string {
  return totalBytes ? ` of ${formatBytes(totalBytes)} (${Math.floor((100 * bytes) / totalBytes)}%)` : ''
}

function bar(fraction: number): string {
  const done = Math.min(1, Math.max(0, fraction))
  const full = Math.round(done * BAR_WIDTH)
  return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)} ${String(Math.floor(done * 100)).padStart(3)}%`
}
