// The machine's own apt settings: package sources and keys. Credentials are never copied.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../run.ts'
import type { TreeWriter } from '../tree.ts'

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

/** Prefixes of apt.conf settings that tell how to reach a mirror and contain no secret. */
const HARMLESS = [
  'Acquire::http::Proxy',
  'Acquire::https::Proxy',
  'Acquire::https::CaInfo',
  'Acquire::Check-Valid-Until',
  'Acquire::Languages',
]

/** The machine's source files, except those with a password in a URL. */
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

/** The enabled lines or paragraphs of a source file. */
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

/** The suite that the sources name most often, without a suffix such as -updates. */
export function suiteOf(sources: readonly AptSource[]): string | undefined {
  const seen = new Map<string, number>()
  for (const suite of sources.flatMap(({ content }) =>
    stanzas(content).flatMap((part) => parse(part).suites),
  )) {
    const plain = /^([a-z]+)(?:-(?:updates|security))?$/.exec(suite)?.[1]
    if (plain) seen.set(plain, (seen.get(plain) ?? 0) + 1)
  }
  return [...seen].sort(([, a], [, b]) => b - a)[0]?.[0]
}

/** Only the distribution's own archive: a vendor's archive may have other builds of the same packages. */
export function archiveOf(sources: readonly AptSource[], suite: string): AptSource[] {
  const own = [suite, `${suite}-updates`, `${suite}-security`]
  const kept = sources.map(({ path, content }) => {
    const parts = stanzas(content).filter((part) => {
      const { type, uris, suites, components } = parse(part)
      const isRemote = uris.length > 0 && uris.every((uri) => !/^(cdrom|file|copy):/.test(uri))
      return (
        type === 'deb' &&
        isRemote &&
        components.includes('main') &&
        suites.length > 0 &&
        suites.every((each) => own.includes(each))
      )
    })
    return { path, content: parts.map((part) => `${part}\n`).join(path.endsWith('.sources') ? '\n' : '') }
  })
  return kept.filter(({ content }) => content !== '')
}

/** The first mirror that the sources name. */
export function mirrorOf(sources: readonly AptSource[]): string | undefined {
  return sources.flatMap(({ content }) => stanzas(content).flatMap((part) => parse(part).uris))[0]
}

export function keyringsOf(sources: readonly AptSource[]): string[] {
  const files = sources.flatMap(({ content }) => content.match(/signed-by[:=]\s*(\/[^\s\]]+)/gi) ?? [])
  return [...new Set(files.map((text) => text.slice(text.indexOf('/'))))]
}

/** A line `deb [options] uri suite component…`, or a paragraph of `Field: values`. */
function parse(stanza: string): { type: string; uris: string[]; suites: string[]; components: string[] } {
  const line = /^(deb(?:-src)?)\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)(.*)$/.exec(stanza)
  if (line) return { type: line[1]!, uris: [line[2]!], suites: [line[3]!], components: words(line[4]!) }
  const field = (name: string) =>
    words(new RegExp(`^${name}:(.*(?:\\n[ \\t].*)*)`, 'im').exec(stanza)?.[1] ?? '')
  const types = field('Types')
  return {
    type: types.includes('deb') ? 'deb' : (types[0] ?? ''),
    uris: field('URIs'),
    suites: field('Suites'),
    components: field('Components'),
  }
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '')
}

/** The harmless part of the machine's apt.conf, as `Key "value";` lines; `onHost` for programs that run outside of sandboxes. */
export async function aptOptions({ onHost = false } = {}): Promise<string[]> {
  const dump = await run(['apt-config', 'dump']).catch(() => undefined)
  const lines = (dump?.exitCode === 0 ? dump.stdout : '').split('\n')
  return lines.filter((line) => {
    const [key = '', value = ''] = line.split(/\s+(.*)/)
    const named = HARMLESS.some((prefix) => key === prefix || key.startsWith(`${prefix}::`))
    const isSecret = value.includes('@')
    // A proxy on this machine's loopback cannot be reached from a sandbox.
    const isLocal = isLoopbackUrl(value)
    return named && value !== '"";' && (onHost || !(isSecret || isLocal))
  })
}

/** Whether a text contains a URL on this machine's loopback. */
export function isLoopbackUrl(text: string): boolean {
  return /\/\/(127\.|localhost|\[::1\])/.test(text)
}

/** Writes sources and settings into a root's /etc/apt. Keys are copied by the allow-list of etc.ts, or come with the keyring package. */
export async function writeAptSettings(tree: TreeWriter, settings: AptSettings): Promise<void> {
  for (const dir of ['apt.conf.d', 'sources.list.d', 'preferences.d', 'trusted.gpg.d', 'keyrings']) {
    await tree.dir(`etc/apt/${dir}`, 0o755)
  }
  for (const { path, content } of settings.sources) await tree.file(`etc/apt/${path}`, content, 0o644)
  if (settings.options.length > 0) {
    await tree.file('etc/apt/apt.conf.d/90islet', settings.options.map((line) => `${line}\n`).join(''), 0o644)
  }
}
