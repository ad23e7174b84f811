// How tests say that a request must be refused.
import assert from 'node:assert/strict'
import { GuestError } from './harness.ts'

/** The error of a request that must fail. */
export async function refusal(promise: Promise<unknown>): Promise<GuestError> {
  try {
    await promise
  } catch (error) {
    assert.ok(error instanceof GuestError, String(error))
    return error
  }
  throw new Error('it was not refused')
}

/** For assert.rejects: an ERROR of this kind, and of this stage where it matters. */
export const refused = (kind: string, stage?: string) => (error: GuestError) => {
  assert.ok(error instanceof GuestError, String(error))
  assert.equal(error.kind, kind, error.message)
  if (stage) assert.equal(error.stage, stage)
  return true
}
