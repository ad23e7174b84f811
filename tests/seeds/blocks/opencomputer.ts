import type { Seed } from '../seeds.ts'

export const opencomputer: Seed = {}
