// Images from registries: skopeo downloads an OCI layout, umoci unpacks its layers, adapt.ts adds what a sandbox needs.
//
//   <staging>/oci/    index.json, blobs/sha256/…; removed with the staging directory
//   <staging>/image/  root/ as unpacked, with its own ids; adapt/
import { readdir, readFile, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { IsletError } from '@islet/contract'
import { exists } from '../../lib/exists.ts'
import { adapt, adaptedTrees, type Wishes } from '../adapt.ts'
import type { Image } from '../image.ts'
import { type Job, publish } from '../job.ts'
import { runOk } from '../run.ts'
import { explain, inspect, type Remote } from './registry.ts'

interface PullJob extends Job {
  reference: string
  insecure: boolean
}

/** How often the downloaded size is checked. */
const WATCH_MS = 250

export async function pullOci(job: PullJob): Promise<Image> {
  const { reference, staging, onProgress } = job
  onProgress({ stage: 'resolve', message: `Asking for ${reference}` })
  const remote = await inspect(reference, job)
  const found = await job.find(remote.digest)
  if (found) {
    onProgress({ stage: 'finish', message: `${reference} is on this machine already`, fraction: 1 })
    return found
  }
  const layout = join(staging.path, 'oci')
  await download(job, remote, layout)
  const config = await readConfig(layout)
  await unpack(job, layout)
  onProgress({ stage: 'finish', message: 'Adding what a sandbox needs', fraction: 0.98 })
  const defaults = await adapt(staging.image, config)
  return publish(staging, {
    digest: remote.digest,
    source: { kind: 'oci', reference },
    defaults,
    trees: adaptedTrees,
  })
}

async function download(job: PullJob, remote: Remote, layout: string): Promise<void> {
  const { insecure, signal, onProgress, staging, reference } = job
  const message = `Downloading ${reference}`
  onProgress({ stage: 'download', message, fraction: 0 })
  const timer = setInterval(async () => {
    const bytes = await arrivedBytes(layout)
    onProgress({
      stage: 'download',
      message,
      fraction: 0.8 * Math.min(1, bytes / Math.max(1, remote.sizeBytes)),
    })
  }, WATCH_MS)
  try {
    const policy = (await hasPolicy()) ? [] : ['--insecure-policy']
    const tls = insecure ? ['--src-tls-verify=false'] : []
    // umoci reads gzip only.
    const argv = [
      'skopeo',
      ...policy,
      'copy',
      ...tls,
      '--dest-compress-format',
      'gzip',
      `docker://${remote.pinned}`,
      `oci:${layout}:image`,
    ] as const
    await runOk(argv, {
      signal,
      tied: true,
      env: { TMPDIR: staging.path },
      explain: (result) => explain(remote.pinned, result),
    })
  } finally {
    clearInterval(timer)
  }
}

/** skopeo refuses to run without a signature policy; an existing policy is respected. */
async function hasPolicy(): Promise<boolean> {
  return (
    (await exists('/etc/containers/policy.json')) || exists(join(homedir(), '.config/containers/policy.json'))
  )
}

/** skopeo writes to the top of the layout and moves complete blobs to blobs/. */
async function arrivedBytes(layout: string): Promise<number> {
  let bytes = 0
  for (const dir of [layout, join(layout, 'blobs/sha256')]) {
    for (const name of await readdir(dir).catch(() => [])) {
      const entry = await stat(join(dir, name)).catch(() => undefined)
      if (entry?.isFile()) bytes += entry.size
    }
  }
  return bytes
}

async function unpack({ signal, onProgress, staging, reference }: PullJob, layout: string): Promise<void> {
  let layers = 0
  const total = (await readManifest(layout)).layers?.length ?? 0
  const onLine = (line: string) => {
    if (!line.includes('unpack layer')) return
    const fraction = 0.8 + (0.18 * layers++) / Math.max(1, total)
    onProgress({ stage: 'unpack', message: `Unpacking layer ${layers} of ${total}`, fraction })
  }
  onProgress({ stage: 'unpack', message: 'Unpacking', fraction: 0.8 })
  await runOk(
    ['umoci', '--log=info', 'raw', 'unpack', '--image', `${layout}:image`, join(staging.image, 'root')],
    {
      signal,
      tied: true,
      onLine,
      explain: (result) =>
        explain(reference, result) ??
        new IsletError('bad_request', `${reference} cannot be unpacked.`, {
          hint: 'Its layers are damaged or in an unknown format.',
          details: { stderr: result.stderr.slice(-2000) },
        }),
    },
  )
}

interface OciManifest {
  config?: { digest?: string }
  layers?: unknown[]
}

async function readManifest(layout: string): Promise<OciManifest> {
  const index = JSON.parse(await readFile(join(layout, 'index.json'), 'utf8')) as {
    manifests: { digest: string }[]
  }
  return JSON.parse(await readFile(blob(layout, index.manifests[0]!.digest), 'utf8')) as OciManifest
}

/** The parts of the image's configuration that are used here. It is hostile: everything is checked. */
async function readConfig(layout: string): Promise<Wishes> {
  const { config } = await readManifest(layout)
  const parsed = JSON.parse(await readFile(blob(layout, config?.digest), 'utf8')) as {
    config?: { Env?: unknown; WorkingDir?: unknown }
  }
  const { Env, WorkingDir } = parsed.config ?? {}
  const env: Record<string, string> = {}
  for (const entry of Array.isArray(Env) ? Env : []) {
    const match = typeof entry === 'string' ? /^([A-Za-z_][A-Za-z0-9_]*)=([^\0]*)$/s.exec(entry) : null
    // HOME depends on the user of the sandbox.
    if (match && match[1] !== 'HOME') env[match[1]!] = match[2]!
  }
  const isPath = typeof WorkingDir === 'string' && WorkingDir.length < 4096 && !WorkingDir.includes('\0')
  return { env, ...(isPath && { workdir: WorkingDir }) }
}

function blob(layout: string, digest: string | undefined): string {
  const hex = /^sha256:([0-9a-f]{64})$/.exec(digest ?? '')?.[1]
  if (!hex) throw new IsletError('bad_request', 'The image has no configuration.')
  return join(layout, 'blobs/sha256', hex)
}
