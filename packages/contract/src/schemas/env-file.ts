import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { byteLength, fewMembers, noNul, sandboxPath } from './common.ts'

export const envKey = z
  .string()
  .max(LIMITS.envNameBytes)
  .regex(/^[A-Za-z_][A-Za-z0-9_.-]*$/, 'a key has letters, digits, _ . and - and begins with a letter or _')
const envText = z
  .string()
  .refine((text) => noNul(text) && text.isWellFormed() && byteLength(text) <= LIMITS.envValueBytes, {
    message: `a value is Unicode text of at most ${LIMITS.envValueBytes} bytes without NUL`,
  })

export const envFileQuery = z.strictObject({
  file: sandboxPath.meta({
    description: 'A path like .env; relative to the working directory of the sandbox.',
  }),
})
export const envVariables = z.object({ variables: z.record(z.string(), z.string()) })
export const updateEnvFile = z.strictObject({
  variables: fewMembers(LIMITS.envEntries, z.record(envKey, envText)),
})
export const removeEnvQuery = z.strictObject({
  file: sandboxPath,
  key: z
    .union([z.string(), z.array(z.string()).max(LIMITS.envEntries)])
    .meta({ description: 'May be given more than once.' }),
})
export const envKeys = z.object({ keys: z.array(z.string()) })
