// The documents, one file each.
import { computesdk } from './blocks/computesdk.ts'
import { opencomputer } from './blocks/opencomputer.ts'
import type { Seed } from './seeds.ts'

export const SEEDS: Record<string, Seed> = { opencomputer, computesdk }
