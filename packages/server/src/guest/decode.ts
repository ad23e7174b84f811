import { decodeFields } from '../wire/fields.ts'
import { FIELDS, type FieldsOf, type MessageName } from './messages.gen.ts'

/** The fields of a message from the guest. A malformed one throws WireError. */
export function decode<Name extends MessageName>(name: Name, payload: Buffer): FieldsOf[Name] {
  return decodeFields(FIELDS[name]!, payload) as FieldsOf[Name]
}
