import { z } from 'zod'
import { idPattern } from '../ids.ts'
import { LIMITS } from '../limits.ts'
import { checkpointId } from './checkpoint.ts'
import {
  direction,
  noNul,
  ONE_PLACE,
  onePlace,
  pageFields,
  queryBoolean,
  sandboxId,
  timestamp,
  total,
} from './common.ts'

const snapshotId = z.string().regex(idPattern('snapshot'), 'not a snapshot id')
/** Cannot be mistaken for an id. */
const snapshotTag = z
  .string()
  .regex(
    /^(?!snp-)[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/,
    'a tag has letters, digits, dots, dashes and underscores, at most 128, and does not begin with snp-',
  )
const name = z
  .string()
  .min(1)
  .max(LIMITS.nameLength)
  .regex(/^[^\p{Cc}]+$/u, 'no control characters')

export const createSnapshot = z
  .strictObject({
    sandbox: sandboxId.optional().meta({ description: 'Make the snapshot from this sandbox as it is now.' }),
    checkpoint: checkpointId.optional().meta({ description: 'Make the snapshot from this checkpoint.' }),
    name: name.optional(),
    tag: snapshotTag
      .optional()
      .meta({ description: 'If another snapshot has this tag, the tag moves here.' }),
    description: z.string().max(LIMITS.descriptionLength).refine(noNul, 'no NUL').optional(),
  })
  .refine(
    (input) => (input.sandbox === undefined) !== (input.checkpoint === undefined),
    'name either a sandbox or a checkpoint',
  )
export type CreateSnapshot = z.input<typeof createSnapshot>
export type CreateSnapshotParsed = z.output<typeof createSnapshot>

export const updateSnapshot = z.strictObject({
  tag: snapshotTag.nullable().optional().meta({ description: 'null removes the tag.' }),
  name: name.nullable().optional(),
  description: z.string().max(LIMITS.descriptionLength).refine(noNul, 'no NUL').nullable().optional(),
})
export type UpdateSnapshot = z.input<typeof updateSnapshot>
export type UpdateSnapshotParsed = z.output<typeof updateSnapshot>

export const snapshotInfo = z.object({
  id: snapshotId,
  name: z.string().nullable(),
  tag: z.string().nullable(),
  description: z.string().nullable(),
  sandboxId: z
    .string()
    .nullable()
    .meta({ description: 'The sandbox it was made from; null if it was imported.' }),
  checkpointId: z.string().nullable(),
  parentId: z
    .string()
    .nullable()
    .meta({ description: 'The snapshot that its sandbox was made from, if any.' }),
  runtime: z.string(),
  memory: z.boolean(),
  sizeBytes: z.number().nullable(),
  createdAt: timestamp,
})
export type SnapshotInfo = z.infer<typeof snapshotInfo>

export const listSnapshots = z
  .strictObject({
    name: z.string().optional(),
    tag: z.string().optional(),
    sandbox: sandboxId.optional(),
    ...pageFields,
    sort: z.enum(['created', 'name']).optional().meta({ description: 'Default: created.' }),
    direction: direction.meta({ description: 'Default: desc for created, asc for name.' }),
  })
  .refine(onePlace, ONE_PLACE)
export type ListSnapshots = z.input<typeof listSnapshots>
export type ListSnapshotsParsed = z.output<typeof listSnapshots>
export const snapshotPage = z.object({
  snapshots: z.array(snapshotInfo),
  total,
  cursor: z.string().optional(),
})
export type SnapshotPage = z.infer<typeof snapshotPage>

const lineageEntry = z.object({
  id: snapshotId,
  name: z.string().nullable(),
  tag: z.string().nullable(),
  createdAt: timestamp,
  deleted: z.boolean().meta({ description: 'Deleted, but other snapshots are built on it.' }),
})
export const snapshotLineage = z.object({
  lineage: z.array(lineageEntry).meta({ description: 'The snapshot, its parent, the parent of that, ...' }),
  children: z.array(lineageEntry.extend({ parentId: z.string() })).meta({
    description: 'All descendants, parents before children.',
  }),
})
export type SnapshotLineage = z.infer<typeof snapshotLineage>

export const importSnapshot = z.strictObject({
  tag: snapshotTag
    .optional()
    .meta({ description: 'If another snapshot has this tag, the tag moves here. Default: none.' }),
  name: name.optional().meta({ description: 'Default: the name in the file.' }),
  otherHost: queryBoolean.optional().meta({
    description:
      'Allow a snapshot of the runtime host from a machine with another operating system. Default: false.',
  }),
})
export type ImportSnapshotParsed = z.output<typeof importSnapshot>
