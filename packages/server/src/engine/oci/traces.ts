// Lists everything on this machine that belongs to an instance, for tests that check that nothing is left.
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Instance, UIDS_PER_CELL } from '../../instance.ts'
import { RUNTIME_ROOTS } from '../teardown.ts'

export async function tracesOf(instance: Instance): Promise<string[]> {
  const found = await Promise.all([
    processes(instance),
    mounts(instance),
    devices(instance),
    cgroups(instance),
    directories(instance),
    tables(instance),
  ])
  return found.flat()
}

async function processes({ uidStart, uidRanges, runDir }: Instance): Promise<string[]> {
  const found: string[] = []
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
    const uid = Number(/^Uid:\s*(\d+)/m.exec(status)?.[1] ?? 0)
    const argv = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    const isOurs = uid >= uidStart && uid < uidStart + uidRanges * UIDS_PER_CELL
    const isZombie = /^State:\s*Z/m.test(status)
    // The warden is not listed: it ends with its server.
    const isRuntime = RUNTIME_ROOTS.some((root) => argv.split('\0')[2] === join(runDir, root))
    if ((isOurs && !isZombie) || isRuntime) found.push(`process ${pid} ${argv}`)
  }
  return found
}

async function mounts({ runDir, dataDir }: Instance): Promise<string[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')
  return lines
    .filter((line) => line.includes(` ${runDir}/`) || line.includes(` ${dataDir}`))
    .map((line) => `mount ${line}`)
}

async function devices({ bridge }: Instance): Promise<string[]> {
  const names = await readdir('/sys/class/net')
  return names
    .filter((name) => name === bridge || name.startsWith(`${bridge}v`))
    .map((name) => `device ${name}`)
}

async function cgroups({ cgroup }: Instance): Promise<string[]> {
  const found: string[] = []
  for (const hierarchy of ['', ...(await readdir('/sys/fs/cgroup'))]) {
    const parent = join('/sys/fs/cgroup', hierarchy, cgroup)
    const entries = await readdir(parent, { withFileTypes: true }).catch(() => undefined)
    if (!entries) continue
    found.push(`cgroup ${parent}`)
    found.push(
      ...entries.filter((entry) => entry.isDirectory()).map((entry) => `cgroup ${join(parent, entry.name)}`),
    )
  }
  return found
}

async function directories({ runDir }: Instance): Promise<string[]> {
  const found: string[] = []
  for (const name of ['s', ...RUNTIME_ROOTS]) {
    const entries = await readdir(join(runDir, name)).catch(() => [])
    found.push(...entries.map((entry) => `directory ${join(runDir, name, entry)}`))
  }
  return found
}

async function tables({ table }: Instance): Promise<string[]> {
  return promisify(execFile)('nft', ['list', 'table', 'inet', table]).then(
    () => [`table ${table}`],
    () => [],
  )
}
