// The machine's own apt settings: where packages come from and by which keys. Credentials are left where they are.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './run.ts'
import type { TreeWriter } from './tree.ts'

export interface AptSource {
  /** The file's path below /etc/apt: `sources.list`, `sources.list.d/debian.sources`. */
  path: string
  content: string
}

export interface AptSettings {
  sources: readonly AptSource[]
  /** `Key "value";` lines. */
  options: readonly string[]
}

/** Settings of apt.conf that say how to reach a mirror and cannot name a secret, by prefix. */
const HARMLESS = [
  'Acquire::http::Proxy',
  'Acquire::https::Proxy',
  'Acquire::https::CaInfo',
  'Acquire::Check-Valid-Until',
  'Acquire::Languages',
]

/** The machine's source files, without those that carry a password in an address. */
export async function aptSources(hostRoot = '/'): Promise<AptSource[]> {
  const apt = join(hostRoot, 'etc/apt')
  const listed = await readdir(join(apt, 'sources.list.d')).catch(() => [])
  const paths = [
    'sources.list',
    ...listed.filter((name) => /\.(list|sources)$/.test(name)).map((name) => `sources.list.d/${name}`),
  ]
  const sources: AptSource[] = []
  for (const path of paths.sort()) {
    const content = await readFile(join(apt, path), 'utf8').catch(() => '')
    if (stanzas(content).length > 0 && !hasPassword(content)) sources.push({ path, content })
  }
  return sources
}

/** The lines or paragraphs of a source file that are switched on. */
function stanzas(content: string): string[] {
  const code = content
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('#'))
    .join('\n')
  return code
    .split(/^\s*$|^(?=deb)/m)
    .map((part) => part.trim())
    .filter((part) => part !== '' && !/^Enabled:\s*no\b/im.test(part))
}

function hasPassword(content: string): boolean {
  return /:\/\/[^/\s]*@/.test(content)
}

/** The suite the sources are about: the one named most often without a suffix such as -updates. */
export function suiteOf(sources: readonly AptSource[]): string | undefined {
  const seen = new Map<string, number>()
  for (const part of sources.flatMap((source) => stanzas(source.content))) {
    const line = /^deb\s+(?:\[[^\]]*\]\s+)?\S+\s+(\S+)/.exec(part)?.[1]
    const field = /^Suites:\s*(.+)$/im.exec(part)?.[1]
    for (const suite of (line ?? field ?? '').split(/\s+/)) {
      const plain = /^([a-z]+)(?:-(?:updates|security|backports))?$/.exec(suite)?.[1]
      if (plain) seen.set(plain, (seen.get(plain) ?? 0) + 1)
    }
  }
  return [...seen].sort(([, a], [, b]) => b - a)[0]?.[0]
}

/** The harmless part of the machine's apt.conf, as `Key "value";` lines. */
export async function aptOptions(): Promise<string[]> {
  const dump = await run(['apt-config', 'dump']).catch(() => undefined)
  const lines = (dump?.exitCode === 0 ? dump.stdout : '').split('\n')
  return lines.filter((line) => {
    const [key = '', value = ''] = line.split(/\s+(.*)/)
    const named = HARMLESS.some((prefix) => key === prefix || key.startsWith(`${prefix}::`))
    // A proxy on this machine's loopback is none inside a sandbox.
    return named && value !== '"";' && !value.includes('@') && !/\/\/(127\.|localhost|\[::1\])/.test(value)
  })
}

/** Puts sources and settings into a root's /etc/apt. Keys are copied by the allow-list of etc.ts, or come with the keyring package. */
export async function writeAptSettings(tree: TreeWriter, settings: AptSettings): Promise<void> {
  for (const dir of ['apt.conf.d', 'sources.list.d', 'preferences.d', 'trusted.gpg.d', 'keyrings']) {
    await tree.dir(`etc/apt/${dir}`, 0o755)
  }
  for (const { path, content } of settings.sources) await tree.file(`etc/apt/${path}`, content, 0o644)
  if (settings.options.length > 0) {
    await tree.file('etc/apt/apt.conf.d/90islet', settings.options.map((line) => `${line}\n`).join(''), 0o644)
  }
}
