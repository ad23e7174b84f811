import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { machineLimits } from './capacity.ts'

const MIB = 1024 * 1024
const CPU_MILLIS = availableParallelism() * 1000

const MACHINES = {
  'a machine of its own': { files: {}, memoryBytes: totalmem(), cpuMillis: CPU_MILLIS, pids: 32_768 },
  'a container on cgroup v2': {
    files: { 'memory.max': `${100 * MIB}\n`, 'cpu.max': '50000 100000\n', 'pids.max': '500\n' },
    ...{ memoryBytes: 100 * MIB, cpuMillis: 500, pids: 500 },
  },
  'a container on cgroup v2 without limits': {
    files: { 'memory.max': 'max\n', 'cpu.max': 'max 100000\n', 'pids.max': 'max\n' },
    ...{ memoryBytes: totalmem(), cpuMillis: CPU_MILLIS, pids: 32_768 },
  },
  'a container on cgroup v1': {
    files: {
      'memory/memory.limit_in_bytes': `${64 * MIB}\n`,
      'cpu/cpu.cfs_quota_us': '25000\n',
      'cpu/cpu.cfs_period_us': '50000\n',
      'pids/pids.max': '100\n',
    },
    ...{ memoryBytes: 64 * MIB, cpuMillis: 500, pids: 100 },
  },
  'a container on cgroup v1 without limits': {
    files: {
      'memory/memory.limit_in_bytes': '9223372036854771712\n',
      'cpu/cpu.cfs_quota_us': '-1\n',
      'cpu/cpu.cfs_period_us': '100000\n',
      'pids/pids.max': 'max\n',
    },
    ...{ memoryBytes: totalmem(), cpuMillis: CPU_MILLIS, pids: 32_768 },
  },
}

for (const [name, { files, ...limits }] of Object.entries(MACHINES)) {
  test(`${name} has what it may use`, () => {
    const root = mkdtempSync(join(tmpdir(), 'islet-capacity-'))
    try {
      const all = { 'sys/kernel/pid_max': '32768\n', 'sys/kernel/threads-max': '100000\n', ...files }
      for (const [path, content] of Object.entries(all)) {
        mkdirSync(dirname(join(root, path)), { recursive: true })
        writeFileSync(join(root, path), content)
      }
      assert.deepEqual(machineLimits({ cgroup: root, proc: root }), limits)
    } finally {
      rmSync(root, { recursive: true })
    }
  })
}
