// The documents, one file each.
import { agentium } from './blocks/agentium.ts'
import { agentuity } from './blocks/agentuity.ts'
import { computesdk } from './blocks/computesdk.ts'
import { iris } from './blocks/iris.ts'
import { opencomputer } from './blocks/opencomputer.ts'
import type { Seed } from './seeds.ts'

export const SEEDS: Record<string, Seed> = { iris, agentuity, opencomputer, agentium, computesdk }
