// Looks up a reference in its registry, with skopeo, which uses the credentials of the machine's containers auth file.
import { createHash } from 'node:crypto'
import { IsletError } from '@islet/contract'
import { type RunResult, runOk } from '../run.ts'

export interface Remote {
  /** `repository@sha256:…`, which names exactly one manifest. */
  pinned: string
  /** Hex digits of that manifest's sha256. */
  digest: string
  /** Compressed bytes of all layers. */
  sizeBytes: number
}

interface Manifest {
  schemaVersion?: number
  manifests?: { digest?: string; platform?: { architecture?: string; os?: string } }[]
  layers?: { size?: number }[]
}

/** The first part is a host name if it has a dot or a port, as in other tools. */
const HOST = '(?:localhost(?::\\d+)?|[A-Za-z0-9-]+(?:\\.[A-Za-z0-9-]+)+(?::\\d+)?|[A-Za-z0-9-]+:\\d+)'
const NAME = '[a-z0-9]+(?:[._-]+[a-z0-9]+)*'
const REFERENCE = new RegExp(
  `^((?:${HOST}/)?${NAME}(?:/${NAME})*)(?::(\\w[\\w.-]{0,127}))?(?:@sha256:([0-9a-f]{64}))?$`,
)
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = { x64: 'amd64', ia32: '386' }

/** Splits `registry/repository:tag@digest`; anything else is a bad request. */
export function parseReference(text: string): { repository: string; reference: string } {
  const plain = text.replace(/^docker:\/\//, '')
  const match = plain.length <= 512 ? REFERENCE.exec(plain) : null
  if (!match) {
    throw new IsletError('bad_request', `${JSON.stringify(text.slice(0, 200))} is not an image reference.`, {
      hint: 'References look like registry.example.com/team/name:tag or name@sha256:….',
    })
  }
  const [, repository = '', tag, digest] = match
  return {
    repository,
    reference: digest ? `${repository}@sha256:${digest}` : `${repository}:${tag ?? 'latest'}`,
  }
}

export async function inspect(
  text: string,
  options: { insecure: boolean; signal: AbortSignal },
): Promise<Remote> {
  const { repository, reference } = parseReference(text)
  let { manifest, digest } = await fetchManifest(reference, options)
  if (manifest.manifests) {
    const architecture = ARCHITECTURES[process.arch] ?? process.arch
    const fits = manifest.manifests.find(
      ({ platform }) => platform?.os === 'linux' && platform.architecture === architecture,
    )
    if (!fits?.digest) {
      throw new IsletError('not_supported', `${reference} has no image for linux/${architecture}.`, {
        hint: 'Choose an image that is built for this machine.',
      })
    }
    const wanted = fits.digest
    ;({ manifest, digest } = await fetchManifest(`${repository}@${wanted}`, options))
    if (wanted !== `sha256:${digest}`) throw damaged(reference)
  }
  if (!manifest.layers)
    throw new IsletError('not_supported', `${reference} is in a format that is too old to be pulled.`)
  const sizeBytes = manifest.layers.reduce((sum, layer) => sum + (Number(layer.size) || 0), 0)
  return { pinned: `${repository}@sha256:${digest}`, digest, sizeBytes }
}

async function fetchManifest(
  reference: string,
  { insecure, signal }: { insecure: boolean; signal: AbortSignal },
) {
  const tls = insecure ? ['--tls-verify=false'] : []
  const { stdout } = await runOk(['skopeo', 'inspect', '--raw', ...tls, `docker://${reference}`], {
    signal,
    tied: true,
    maxOutputBytes: 4 << 20,
    explain: (result) => explain(reference, result),
  })
  try {
    return {
      manifest: JSON.parse(stdout) as Manifest,
      digest: createHash('sha256').update(stdout).digest('hex'),
    }
  } catch {
    throw damaged(reference)
  }
}

/** Turns skopeo's error output into an error. */
export function explain(reference: string, { stderr }: RunResult): IsletError | undefined {
  const details = { stderr: stderr.slice(-2000) }
  const registry = reference.split('/')[0]
  const says = (pattern: RegExp) => pattern.test(stderr)
  if (says(/invalid reference format/i))
    return new IsletError('bad_request', `${reference} is not an image reference.`)
  if (says(/server gave HTTP response to HTTPS client/i)) {
    return new IsletError('bad_request', `The registry ${registry} does not speak TLS.`, {
      hint: 'If you trust the network to it, pass insecure (islet image pull --insecure).',
      details,
    })
  }
  if (says(/x509|certificate/i)) {
    return new IsletError(
      'bad_request',
      `The certificate of the registry ${registry} is not trusted by this machine.`,
      {
        hint: 'Install its authority on this machine, or pass insecure.',
        details,
      },
    )
  }
  if (says(/manifest unknown|name unknown|not found|status.* 404|repository name not known/i)) {
    return new IsletError('image_not_found', `There is no image ${reference}.`, {
      hint: 'Check the name and the tag.',
      details,
    })
  }
  if (says(/unauthorized|authentication required|denied|forbidden|status.* 40[13]/i)) {
    return new IsletError('forbidden', `The registry denies access to ${reference}.`, {
      hint: `The image may not exist, or needs credentials: run skopeo login ${registry} as the user of the server.`,
      details,
    })
  }
  if (says(/too ?many ?requests|status.* 429/i)) {
    return new IsletError('too_many_requests', `The registry ${registry} limits requests.`, {
      hint: 'Try again later.',
      details,
    })
  }
  if (
    says(
      /digest.*(mismatch|did not match|does not match)|does not match digest|invalid (gzip|tar)|gzip: invalid|invalid checksum|unexpected EOF|corrupt/i,
    )
  ) {
    return damaged(reference, details)
  }
  if (
    says(
      /no such host|connection refused|connection reset|timeout|timed out|unreachable|server misbehaving|dial tcp|status.* 5\d\d|EOF/i,
    )
  ) {
    return new IsletError('registry_unavailable', `The registry of ${reference} cannot be reached.`, {
      hint: 'Check its name and the network of this machine, then try again.',
      details,
    })
  }
  return undefined
}

function damaged(reference: string, details?: Record<string, unknown>): IsletError {
  return new IsletError('registry_unavailable', `The registry sent damaged data for ${reference}.`, {
    hint: 'Try again; if it fails again, push the image again.',
    ...(details && { details }),
  })
}
