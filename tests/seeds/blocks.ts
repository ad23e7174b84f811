// The documents, one file each.
import { agentium } from './blocks/agentium.ts'
import { iris } from './blocks/iris.ts'
import type { Seed } from './seeds.ts'

export const SEEDS: Record<string, Seed> = { agentium, iris }
