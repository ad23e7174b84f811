// The certificate authorities that this machine's owner added to the public ones. A network that inspects TLS cannot be used
// without them, so sandboxes of the images made here trust what the machine trusts.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImageDefaults } from './image.ts'

const DIRECTORY = 'usr/local/share/ca-certificates'
/** All of them together, as Debian's update-ca-certificates writes it. */
const BUNDLE = '/etc/ssl/certs/ca-certificates.crt'
const MAX_BYTES = 1024 * 1024

export interface Authority {
  /** Below the root of an image. */
  path: string
  content: string
}

export async function localAuthorities(hostRoot = '/'): Promise<Authority[]> {
  const directory = join(hostRoot, DIRECTORY)
  const names = await readdir(directory).catch(() => [])
  const found: Authority[] = []
  for (const name of names.filter((candidate) => /^[\w.-]+\.crt$/.test(candidate)).sort()) {
    const content = await readFile(join(directory, name), 'utf8').catch(() => '')
    if (!content.includes('BEGIN CERTIFICATE') || content.includes('PRIVATE KEY')) continue
    if (content.length <= MAX_BYTES) found.push({ path: `${DIRECTORY}/${name}`, content })
  }
  return found
}

/** Node brings its own list of authorities along and must be told of others. */
export function trusting(defaults: ImageDefaults, authorities: readonly Authority[]): ImageDefaults {
  if (authorities.length === 0) return defaults
  return { ...defaults, env: { ...defaults.env, NODE_EXTRA_CA_CERTS: BUNDLE } }
}
