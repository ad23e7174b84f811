import type { Seed } from '../seeds.ts'
import { calls } from './computesdk/calls.ts'
import { files } from './computesdk/files.ts'
import { live } from './computesdk/live.ts'
import { programs } from './computesdk/programs.ts'
import { records } from './computesdk/records.ts'

export const computesdk: Seed = { ...calls, ...files, ...programs, ...records, ...live }
