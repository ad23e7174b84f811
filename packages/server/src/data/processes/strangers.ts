// Processes that a guest knows and this server does not.
import type { Guest, GuestProcessState } from '../../guest/guest.ts'

/**
 * One that has ended had its end recorded before a crash, but the guest was not told so. One that runs came with the memory of
 * another sandbox: nobody reads what it prints, and it must not wait for that.
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
