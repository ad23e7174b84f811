import { z } from 'zod'
import { idPattern } from '../ids.ts'
import { LIMITS } from '../limits.ts'
import { sandboxPath, timestamp } from './common.ts'

const watcherId = z.string().regex(idPattern('watcher'), 'not a watcher id')

/** A pattern without a slash matches any part of the path below the root; with a slash, the path, absolute or below the root. */
export const globs = z.array(z.string().min(1).max(1024)).max(LIMITS.globs)

export const createWatcher = z.strictObject({
  path: sandboxPath,
  includeContent: z
    .boolean()
    .optional()
    .meta({ description: 'Include the content of files that were added or changed. Default: false.' }),
  ignored: globs.optional().meta({ description: "Globs, like ['node_modules', '*.log']." }),
  encoding: z
    .enum(['raw', 'base64'])
    .optional()
    .meta({ description: 'The encoding of content. Default: raw, UTF-8 text.' }),
})
export type CreateWatcher = z.input<typeof createWatcher>
export type CreateWatcherParsed = z.output<typeof createWatcher>

export const watcherInfo = z.object({
  id: watcherId,
  sandboxId: z.string(),
  path: z.string(),
  includeContent: z.boolean(),
  ignored: z.array(z.string()),
  encoding: z.enum(['raw', 'base64']),
  status: z.enum(['active', 'stopped']),
  reason: z.string().nullable().meta({ description: 'Why it stopped.' }),
  channel: z.string().meta({ description: 'The path of its WebSocket.' }),
  createdAt: timestamp,
})
export type WatcherInfo = z.infer<typeof watcherInfo>
export const watcherList = z.object({ watchers: z.array(watcherInfo) })

export const fileChange = z.object({
  event: z.enum(['add', 'change', 'unlink', 'addDir', 'unlinkDir']),
  path: z.string(),
  content: z.string().optional(),
  contentOmitted: z
    .enum(['too_large', 'unreadable'])
    .optional()
    .meta({ description: 'Why content is missing although includeContent is true.' }),
})
export type FileChange = z.infer<typeof fileChange>

/** WS .../watchers/{wid}/events: the server's text frames. */
export const watcherMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('start'), watcher: watcherInfo }),
  z.object({ type: z.literal('change'), ...fileChange.shape }),
  z
    .object({ type: z.literal('overflow') })
    .meta({ description: 'Events were lost: look at the files again.' }),
  z.object({ type: z.literal('exit') }).meta({ description: 'The watcher was destroyed.' }),
  z.object({ type: z.literal('error'), error: z.object({ code: z.string(), message: z.string() }) }),
])
export type WatcherMessage = z.infer<typeof watcherMessage>
