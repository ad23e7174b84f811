// The machine and the commit that the figures are from.
import { execFileSync } from 'node:child_process'
import { cpus, release, totalmem } from 'node:os'
import { root } from '../tests/support/server.ts'

export interface Machine {
  takenAt: string
  commit: string
  /** The tree had changes that were not committed. */
  changed: boolean
  cores: number
  cpu: string
  memoryGiB: number
  kernel: string
  node: string
  docker?: string
}

export function thisMachine(docker: string | undefined): Machine {
  return {
    takenAt: new Date().toISOString(),
    commit: git('rev-parse', '--short', 'HEAD'),
    changed:
      git('status', '--porcelain', '--untracked-files=no', '--', '.', ':!bench/results', ':!README.md') !==
      '',
    cores: cpus().length,
    cpu: cpus()[0]?.model.trim() ?? '',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    docker,
  }
}

export function inWords(machine: Machine): string {
  const { takenAt, commit, changed, cores, cpu, memoryGiB, kernel, node, docker } = machine
  const parts = [
    `${cores} cores${cpu ? ` (${cpu})` : ''}`,
    `${memoryGiB} GiB`,
    `Linux ${kernel}`,
    `Node ${node}`,
  ]
  if (docker) parts.push(`Docker ${docker}`)
  return `${takenAt.slice(0, 16).replace('T', ' ')} UTC, commit ${commit}${changed ? ' and changes' : ''}, ${parts.join(', ')}`
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
}
