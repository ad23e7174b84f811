// Processes that a guest has and this server has no running record of.
import type { Guest, GuestProcessState } from '../../guest/guest.ts'

/**
 * An ended one: its end was recorded, but the server crashed before FORGET. A running one came with the memory of another
 * sandbox: its output is discarded, so that it does not wait for a reader.
 */
export async function leaveAlone(
  guest: Guest,
  { id, running, outputEnd }: GuestProcessState,
  onEnd: () => void = () => {},
): Promise<void> {
  try {
    const process = await guest.attach(id, outputEnd, { write() {} })
    if (!running) return process.forget()
    process.exited
      .then(
        () => process.forget(),
        () => {},
      )
      .finally(onEnd)
  } catch (error) {
    onEnd()
    throw error
  }
}
