// The checks of `islet doctor`. The needs of the engine are checked by the server's code, everything else here.
import { readFile, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { dataDirectory, hasCode, resolveSettings } from '@islet/sdk'
import type { Finding } from '@islet/server/probe'
import { connect } from './connect.ts'
import { formatBytes } from './format.ts'
import { hintFor } from './hints.ts'
import { readUnit } from './systemd/systemd.ts'
import { settingsOf } from './systemd/unit.ts'

const LEAST_DISK_BYTES = 2 * 1024 ** 3
/** Each watcher takes one, and so does each program in a sandbox that watches files; a sandbox has at most 64 watchers. */
const LEAST_INOTIFY_INSTANCES = 128

export async function checkClient(): Promise<Finding[]> {
  return [node(), await server(), await disk()]
}

export async function checkServerSide(): Promise<Finding[]> {
  const { probeHoles, probeOci } = await import('@islet/server/probe')
  const programs = [await nativeProgram('guest'), await nativeProgram('warden')]
  return [...(await probeOci()), ...(await probeHoles()), ...programs, await inotify(), await exposure()]
}

/** Whether other machines reach a server with the settings of the service and of this environment. */
async function exposure(): Promise<Finding> {
  return checkExposure({ ...settingsOf(await readUnit()), ...process.env })
}

export async function checkExposure(settings: NodeJS.ProcessEnv): Promise<Finding> {
  const name = 'exposure'
  const { isLoopback, loadConfig } = await import('@islet/server')
  const { ISLET_TLS_CERT, ISLET_TLS_KEY, ...env } = settings
  try {
    const { host, tlsCert } = loadConfig({ env })
    const hasTls = Boolean(ISLET_TLS_CERT && ISLET_TLS_KEY) || tlsCert !== undefined
    if (isLoopback(host))
      return { name, ok: true, detail: `The server listens on ${host}: only this machine reaches it.` }
    if (hasTls) return { name, ok: true, detail: `The server listens on ${host} with TLS.` }
    const detail = `The server listens on ${host} without TLS: the network can read the key and all data.`
    const mend = 'Set ISLET_TLS_CERT and ISLET_TLS_KEY, or set ISLET_HOST=127.0.0.1 and use a proxy with TLS.'
    return { name, ok: false, optional: true, detail, mend }
  } catch (error) {
    const mend = 'islet serve --help lists the settings.'
    return { name, ok: false, optional: true, detail: (error as Error).message, mend }
  }
}

function node(): Finding {
  // bin/islet.js has already refused a Node that is too old.
  return { name: 'node', ok: true, detail: `This is ${process.version}.` }
}

async function server(): Promise<Finding> {
  const name = 'server'
  try {
    const islet = connect({ retries: 0 })
    const { version, engine, isolation } = await islet.info()
    const detail = `${islet.url} answers: version ${version}, engine ${engine}, ${isolation}.`
    return { name, ok: true, detail }
  } catch (error) {
    if (hasCode(error, 'unauthorized')) {
      const { url, apiKey } = resolveSettings()
      const key = apiKey === undefined ? 'No key was found' : 'The key is wrong'
      const mend = hintFor('unauthorized', error.hint)
      return { name, ok: false, detail: `${url} answers, but refuses the key. ${key}.`, mend }
    }
    const optional = process.env.ISLET_URL ? undefined : true
    const mend = hasCode(error, 'invalid_url', 'untrusted_server') ? error.hint : 'islet serve'
    return { name, ok: false, optional, detail: (error as Error).message, mend }
  }
}

async function disk(): Promise<Finding> {
  const directory = dataDirectory() ?? '/'
  const free = await freeBytes(directory)
  return {
    name: 'disk',
    ok: free >= LEAST_DISK_BYTES,
    optional: true,
    detail: `${formatBytes(free)} free for ${directory}.`,
    mend: 'Free some space, or set ISLET_DATA_DIR to a larger disk.',
  }
}

/** Looks at the nearest parent directory that exists. */
async function freeBytes(directory: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(directory)
    return bavail * bsize
  } catch {
    return directory === dirname(directory) ? 0 : freeBytes(dirname(directory))
  }
}

async function inotify(): Promise<Finding> {
  const setting = (name: string) => readFile(`/proc/sys/fs/inotify/${name}`, 'utf8').then(Number, () => 0)
  const instances = await setting('max_user_instances')
  const watches = await setting('max_user_watches')
  return {
    name: 'inotify',
    ok: instances >= LEAST_INOTIFY_INSTANCES,
    optional: true,
    detail: `Each sandbox can have ${instances} watchers and ${watches} watched directories.`,
    mend: `sysctl fs.inotify.max_user_instances=${LEAST_INOTIFY_INSTANCES * 8}`,
  }
}

async function nativeProgram(program: 'guest' | 'warden'): Promise<Finding> {
  const { nativeBinary } = await import('@islet/server/native')
  const name = `program ${program}`
  try {
    return { name, ok: true, detail: `${await nativeBinary(program)} is built.` }
  } catch (error) {
    const { message, hint = 'islet setup' } = error as Error & { hint?: string }
    return { name, ok: false, detail: message, mend: hint }
  }
}
