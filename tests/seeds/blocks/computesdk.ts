import type { Seed } from '../seeds.ts'

export const computesdk: Seed = {}
