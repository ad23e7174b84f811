// A real cell for tests: a runc container with an almost empty root, as the engine makes them, with a first process that does
// nothing. close() removes everything.
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { needs } from '../../../../../tests/support/programs.ts'

needs('gcc', 'runc')

const run = promisify(execFile)

export interface Cell {
  name: string
  pid: number
  uidBase: number
  /** Runs a program inside, as root there unless told; resolves with what it printed. */
  exec(argv: string[], uid?: number): Promise<{ code: number; stdout: string; stderr: string }>
  /** As a script for sh; throws when it fails. */
  sh(script: string, uid?: number): Promise<string>
  mounts(): string[]
  close(): Promise<void>
}

const IDLE = 'int pause(void); int main(void) { for (;;) pause(); }'

export async function startCell(dir: string, name: string, cgroup: string, uidBase: number): Promise<Cell> {
  const bundle = join(dir, `cell-${name}`)
  const state = join(dir, 'runc')
  for (const path of ['rootfs/proc', 'rootfs/dev', 'rootfs/sys', 'rootfs/tmp', 'rootfs/.islet', 'islet']) {
    mkdirSync(join(bundle, path), { recursive: true })
  }
  chmodSync(dir, 0o755) // root inside is nobody outside and must reach the bundle
  await buildIdle(dir)
  await run('cp', [join(dir, 'idle'), join(bundle, 'islet/idle')])
  writeFileSync(join(bundle, 'config.json'), JSON.stringify(config(bundle, name, cgroup, uidBase)))
  const pidFile = join(bundle, 'pid')
  const args = ['--root', state, 'run', '--detach', '--pid-file', pidFile, '--bundle', bundle, name]
  await run('sh', ['-c', 'exec runc "$@" </dev/null >>"$0" 2>&1', join(bundle, 'log'), ...args]).catch(
    (error) => {
      throw new Error(`runc failed: ${readFileSync(join(bundle, 'log'), 'utf8')}`, { cause: error })
    },
  )
  const pid = Number(readFileSync(pidFile, 'utf8'))
  const exec: Cell['exec'] = (argv, uid = 0) => execInside(pid, argv, uid)
  return {
    name,
    pid,
    uidBase,
    exec,
    async sh(script, uid) {
      const { code, stdout, stderr } = await exec(['/bin/sh', '-c', script], uid)
      if (code !== 0) throw new Error(`${script}: exit ${code}: ${stderr}`)
      return stdout
    },
    mounts: () => readFileSync(`/proc/${pid}/mountinfo`, 'utf8').trim().split('\n'),
    async close() {
      await run('runc', ['--root', state, 'delete', '--force', name]).catch(() => {})
      rmSync(bundle, { recursive: true, force: true })
    },
  }
}

const built = new Map<string, Promise<unknown>>()
function buildIdle(dir: string): Promise<unknown> {
  const known = built.get(dir)
  if (known) return known
  const source = join(dir, 'idle.c')
  writeFileSync(source, IDLE)
  const building = run('gcc', ['-static', '-O1', '-o', join(dir, 'idle'), source])
  built.set(dir, building)
  return building
}

function execInside(pid: number, argv: string[], uid: number): ReturnType<Cell['exec']> {
  const enter = [
    '--target',
    `${pid}`,
    '--all',
    '--root',
    '--wd=/',
    '--setuid',
    `${uid}`,
    '--setgid',
    `${uid}`,
  ]
  return new Promise((resolve) => {
    execFile(
      'nsenter',
      [...enter, '--', ...argv],
      { encoding: 'utf8', env: { PATH: process.env.PATH } },
      (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr })
      },
    )
  })
}

function config(bundle: string, name: string, cgroup: string, uidBase: number): object {
  const map = [{ containerID: 0, hostID: uidBase, size: 65536 }]
  const capabilities = ['CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_SETUID', 'CAP_SETGID', 'CAP_KILL']
  const mount = (destination: string, type: string, options: string[], source = type) => ({
    destination,
    type,
    source,
    options,
  })
  return {
    ociVersion: '1.0.2',
    hostname: 'cell',
    root: { path: join(bundle, 'rootfs'), readonly: false },
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      cwd: '/',
      args: ['/.islet/idle'],
      env: ['PATH=/bin'],
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
    },
    mounts: [
      mount('/proc', 'proc', ['nosuid', 'noexec', 'nodev']),
      mount('/dev', 'tmpfs', ['nosuid', 'strictatime', 'mode=755', 'size=64k']),
      mount('/dev/pts', 'devpts', ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5']),
      mount('/dev/shm', 'tmpfs', ['nosuid', 'noexec', 'nodev', 'mode=1777', 'size=64m']),
      mount('/sys', 'sysfs', ['nosuid', 'noexec', 'nodev', 'ro']),
      mount('/tmp', 'tmpfs', ['nosuid', 'nodev', 'mode=1777']),
      mount('/.islet', 'bind', ['rbind', 'ro', 'nosuid', 'nodev'], join(bundle, 'islet')),
    ],
    linux: {
      cgroupsPath: `/${cgroup}/${name}`,
      namespaces: ['user', 'pid', 'mount', 'ipc', 'uts', 'network', 'cgroup'].map((type) => ({ type })),
      uidMappings: map,
      gidMappings: map,
      maskedPaths: ['/proc/kcore', '/proc/keys'],
      readonlyPaths: ['/proc/sys', '/proc/sysrq-trigger'],
      resources: { devices: [{ allow: false, access: 'rwm' }] },
    },
  }
}
