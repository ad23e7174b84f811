import { mismatch, type Shape } from '@islet/contract/client'
import { ClientError } from '../errors.ts'

/** Returns the value if it has the expected shape. `what` begins the error message. */
export function checked<T>(shape: Shape, value: unknown, what: string): T {
  const problem = mismatch(shape, value)
  if (problem === undefined) return value as T
  throw new ClientError('bad_response', `${what} does not have the expected shape: ${problem}.`)
}

/** The same for a text frame. Undefined: a newer server sent a type of message that this client does not know. */
export function checkedMessage<T>(shape: Shape, data: unknown): T | undefined {
  let value: unknown
  try {
    value = JSON.parse(String(data))
  } catch (cause) {
    throw new ClientError('bad_response', 'A message is not valid JSON.', { cause })
  }
  const type = (value as { type?: unknown } | null)?.type
  if (typeof type === 'string' && !typesOf(shape).includes(type)) return undefined
  return checked(shape, value, 'A message')
}

function typesOf(shape: Shape): unknown[] {
  if (typeof shape !== 'object' || shape === null) return []
  if ('either' in shape) return shape.either.flatMap(typesOf)
  const type = 'fields' in shape ? shape.fields.type : undefined
  return typeof type === 'object' && type !== null && 'is' in type ? [type.is] : []
}
