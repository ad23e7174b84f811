import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { fileMode, queryBoolean, queryInteger, sandboxPath, timestamp, userName } from './common.ts'

export const fileEntry = z.object({
  /** Its last part. */
  name: z.string(),
  /** Absolute. */
  path: z.string(),
  type: z.enum(['file', 'directory', 'symlink', 'other']),
  sizeBytes: z.number(),
  mode: z.string().meta({ description: "Octal, like '0644'." }),
  uid: z.number(),
  gid: z.number(),
  modifiedAt: timestamp,
  target: z.string().optional().meta({ description: 'Where a symlink points.' }),
})
export type FileEntry = z.infer<typeof fileEntry>

export const pathQuery = z.strictObject({ path: sandboxPath })
export const writeFileQuery = z.strictObject({
  path: sandboxPath,
  mode: fileMode.optional().meta({ description: 'Default: that of the file it replaces, else 0644.' }),
  owner: userName
    .optional()
    .meta({ description: 'Default: that of the file it replaces, else the user of the sandbox.' }),
  parents: queryBoolean.optional().meta({ description: 'Make missing directories. Default: true.' }),
  exclusive: queryBoolean.optional().meta({ description: 'Fail with file_exists if there is something.' }),
})
export const removeFileQuery = z.strictObject({ path: sandboxPath, recursive: queryBoolean.optional() })
export const statQuery = z.strictObject({
  path: sandboxPath,
  follow: queryBoolean.optional().meta({ description: 'Follow a symlink. Default: true.' }),
})
export const listQuery = z.strictObject({
  path: sandboxPath.optional().meta({ description: 'Default: the working directory.' }),
  depth: queryInteger(1, 64).optional().meta({ description: 'Default: 1, the children.' }),
  limit: queryInteger(1, LIMITS.listEntries).optional().meta({ description: 'Default: 10,000.' }),
})
export const fileList = z.object({ path: z.string(), entries: z.array(fileEntry), truncated: z.boolean() })
export type FileList = z.infer<typeof fileList>

export const makeDirectory = z.strictObject({
  path: sandboxPath,
  parents: z
    .boolean()
    .optional()
    .meta({ description: 'Make missing parents, and be content if it exists. Default: true.' }),
  mode: fileMode.optional(),
  owner: userName.optional(),
})
export const movePath = z.strictObject({
  from: sandboxPath,
  to: sandboxPath,
  overwrite: z.boolean().optional(),
})
export const copyPath = z.strictObject({
  from: sandboxPath,
  to: sandboxPath,
  recursive: z.boolean().optional(),
  overwrite: z.boolean().optional(),
})

export const archiveQuery = z.strictObject({
  path: sandboxPath,
  gzip: queryBoolean.optional().meta({ description: 'Default: true.' }),
})
export const extractQuery = z.strictObject({ path: sandboxPath, owner: userName.optional() })
export const extractResult = z.object({ count: z.number() })
