import { z } from 'zod'
import { idPattern } from '../ids.ts'
import { sandboxPath, timestamp } from './common.ts'
import { globs } from './watcher.ts'

export const overlayId = z.string().regex(idPattern('overlay'), 'not an overlay id')

export const createOverlay = z.strictObject({
  source: sandboxPath
    .refine((path) => path.startsWith('/'), 'the source must be an absolute path')
    .meta({ description: 'The template: the absolute path of a directory in the sandbox.' }),
  target: sandboxPath.meta({ description: 'Where to copy it; relative to the working directory.' }),
  ignore: globs.optional().meta({ description: "Globs, like ['.git', '*.log']." }),
  strategy: z.enum(['copy', 'smart']).optional().meta({
    description:
      'smart: directories that are rarely edited, like node_modules, become links. Default: smart.',
  }),
})
export type CreateOverlay = z.input<typeof createOverlay>
export type CreateOverlayParsed = z.output<typeof createOverlay>

export const overlayInfo = z.object({
  id: overlayId,
  sandboxId: z.string(),
  source: z.string(),
  target: z.string(),
  strategy: z.enum(['copy', 'smart']),
  ignore: z.array(z.string()),
  createdAt: timestamp,
  copyStatus: z.enum(['pending', 'in_progress', 'complete', 'failed']),
  copyError: z.string().optional(),
  stats: z.object({
    copiedFiles: z.number(),
    copiedDirs: z.number(),
    linkedDirs: z.number(),
    skipped: z.array(z.string()).meta({ description: 'At most 1,000 paths below the source.' }),
  }),
})
export type OverlayInfo = z.infer<typeof overlayInfo>
export const overlayList = z.object({ overlays: z.array(overlayInfo) })
