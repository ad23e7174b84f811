import { mismatch, type Shape } from '@islet/contract/client'
import { ClientError } from './errors.ts'

/** What the server sent, if it has the agreed shape. `what` begins the sentence that says that it has not. */
export function checked<T>(shape: Shape, value: unknown, what: string): T {
  const problem = mismatch(shape, value)
  if (problem === undefined) return value as T
  throw new ClientError('bad_response', `${what} is not as agreed: ${problem}.`)
}

/** The same of a text frame. */
export function checkedMessage<T>(shape: Shape, data: unknown): T {
  let value: unknown
  try {
    value = JSON.parse(String(data))
  } catch (cause) {
    throw new ClientError('bad_response', 'A message is not valid JSON.', { cause })
  }
  return checked(shape, value, 'A message')
}
