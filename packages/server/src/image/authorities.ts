// Certificate authorities that were added on this machine. Networks that inspect TLS need them, so sandboxes of images made here
// trust them, too.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImageDefaults } from './image.ts'

const DIRECTORY = 'usr/local/share/ca-certificates'
/** The bundle that Debian's update-ca-certificates writes. */
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

/** Node has its own list of authorities and needs a variable for others. */
export function trusting(defaults: ImageDefaults, authorities: readonly Authority[]): ImageDefaults {
  if (authorities.length === 0) return defaults
  return { ...defaults, env: { ...defaults.env, NODE_EXTRA_CA_CERTS: BUNDLE } }
}
