import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import {
  checkBase64,
  decodedBytes,
  durationMs,
  fileMode,
  queryBoolean,
  queryInteger,
  sandboxPath,
  timestamp,
  userName,
} from './common.ts'

export const fileEntry = z.object({
  /** The last part of the path. */
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

const fileToWrite = z
  .strictObject({
    path: sandboxPath,
    content: z.string(),
    encoding: z.enum(['utf8', 'base64']).default('utf8'),
    mode: fileMode.optional(),
    owner: userName.optional(),
  })
  .superRefine(checkBase64('content', 'encoding'))
/** Files that are part of a call, as a create or a command. */
export const filesToWrite = z
  .array(fileToWrite)
  .max(LIMITS.givenFiles)
  .refine(
    (files) =>
      files.reduce((sum, { content, encoding }) => sum + decodedBytes(content, encoding), 0) <=
      LIMITS.givenFilesBytes,
    `files hold at most ${LIMITS.givenFilesBytes} bytes together; send more with PUT files`,
  )
export type FilesToWriteParsed = z.output<typeof filesToWrite>

export const pathQuery = z.strictObject({ path: sandboxPath })
export const writeFileQuery = z.strictObject({
  path: sandboxPath,
  mode: fileMode.optional().meta({ description: 'Default: the mode of the replaced file, else 0644.' }),
  owner: userName
    .optional()
    .meta({ description: 'Default: the owner of the replaced file, else the user of the sandbox.' }),
  parents: queryBoolean.optional().meta({ description: 'Create missing directories. Default: true.' }),
  exclusive: queryBoolean.optional().meta({ description: 'Fail with file_exists if the path exists.' }),
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
    .meta({ description: 'Create missing parents, and succeed if the directory exists. Default: true.' }),
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

export const batchOperation = z
  .strictObject({
    path: sandboxPath,
    operation: z.enum(['write', 'delete']),
    content: z.string().optional().meta({ description: 'Needed for a write.' }),
    encoding: z.enum(['utf8', 'base64']).optional().meta({ description: 'Of content. Default: utf8.' }),
    mode: fileMode.optional(),
  })
  .refine(({ operation, content }) => operation === 'delete' || content !== undefined, {
    message: 'a write needs content',
    path: ['content'],
  })
  .superRefine(checkBase64('content', 'encoding'))
export type BatchOperation = z.input<typeof batchOperation>
export type BatchOperationParsed = z.output<typeof batchOperation>
export const batchFiles = z.strictObject({
  files: z
    .array(batchOperation)
    .max(LIMITS.batchFiles)
    .refine(
      (files) =>
        files.reduce((sum, { content = '', encoding }) => sum + decodedBytes(content, encoding), 0) <=
        LIMITS.givenFilesBytes,
      `files hold at most ${LIMITS.givenFilesBytes} bytes together; send more with PUT files`,
    )
    .meta({ description: 'Sorted by path; the last operation on a path wins.' }),
})
export const batchResult = z.object({
  path: z.string(),
  success: z.boolean(),
  error: z.string().optional(),
  code: z.string().optional(),
  file: fileEntry.optional().meta({ description: 'Given if a write succeeded.' }),
})
export type BatchResult = z.infer<typeof batchResult>
export const batchResults = z.object({ results: z.array(batchResult) })

/** How long a signed URL works. */
export const urlLifetime = durationMs.refine(
  (value) => value >= 1000 && value <= LIMITS.urlMs,
  'it must be between 1 second and 7 days',
)

export const signFile = z.strictObject({
  path: sandboxPath,
  method: z.enum(['GET', 'PUT']).meta({ description: 'GET: download. PUT: upload.' }),
  expiresIn: urlLifetime.optional().meta({ description: 'Milliseconds or like 30m. Default: one hour.' }),
})
export type SignFile = z.input<typeof signFile>
export const signedUrl = z.object({
  url: z.string(),
  method: z.enum(['GET', 'PUT']),
  expiresAt: timestamp,
})
export type SignedUrl = z.infer<typeof signedUrl>
export const grantQuery = z.strictObject({ grant: z.string().max(16 * 1024) })
