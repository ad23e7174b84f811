// The machine's package database for the runtime `host`: installed packages and versions. With it apt installs only what the machine
// lacks, into the sandbox's own layer. The rest of dpkg's data (file lists, scripts, settings and state below /etc and /var) is left
// out: for dpkg inside, the machine's packages are installed and own no files.
import { linkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TreeWriter } from '../tree.ts'

/** The fields that dpkg and apt use for decisions, and two fields without which dpkg warns. */
const FIELDS = new Set([
  ...[
    'package',
    'architecture',
    'multi-arch',
    'source',
    'version',
    'section',
    'priority',
    'essential',
    'installed-size',
  ],
  ...['protected', 'important', 'provides', 'depends', 'pre-depends', 'conflicts', 'breaks', 'replaces'],
  ...['maintainer', 'description'],
])
/**
 * Prints a hint after a package failed, which only the state it left shows: dpkg does not tell its hooks. Such a package needs more of
 * the system than its files.
 */
export const DPKG_HINT = `DPkg::Post-Invoke { "if dpkg-query --show --showformat='\${db:Status-Status}\\n' 2>/dev/null | grep -qE '^(half|unpacked|triggers)'; then echo 'islet: this runtime shows the programs of the machine, without the settings and state that some packages need. The runtime base is a whole Debian: islet image build base, then --runtime base.' >&2; fi"; };`

/** Writes the database of the machine into `root`, which `tree` writes to. */
export async function copyPackages(hostRoot: string, root: string, tree: TreeWriter): Promise<void> {
  const status = await readFile(join(hostRoot, 'var/lib/dpkg/status'), 'utf8').catch(() => '')
  const info = 'var/lib/dpkg/info'
  await tree.file(`${info}/format`, '1\n', 0o644)
  // dpkg warns about every package without a file list. There are hundreds, and the first sandbox waits for them, so all are hard links to one file.
  const list = join(root, info, 'islet-empty.list')
  await tree.file(`${info}/islet-empty.list`, '/.\n', 0o644)
  const kept = new Map<string, string>()
  for (const fields of status.split(/\n{2,}/).map(parse)) {
    const [name, architecture] = [fields.get('package'), fields.get('architecture')]
    // They become file names.
    if (![name, architecture].every((word) => word && /^[a-z0-9][a-z0-9+.-]*$/.test(word))) continue
    if (fields.get('status')?.split(' ').at(-1) !== 'installed') continue
    const file = fields.get('multi-arch') === 'same' ? `${name}:${architecture}.list` : `${name}.list`
    if (kept.has(file)) continue
    kept.set(file, `${format(fields)}Status: install ok installed\n`)
    linkSync(list, join(root, info, file))
  }
  await tree.file('var/lib/dpkg/status', [...kept.values()].join('\n'), 0o644)
}

/** Parses `Name: value` lines, with continuation lines; keys are in lower case. */
function parse(paragraph: string): Map<string, string> {
  const fields = new Map<string, string>()
  for (const field of paragraph.split(/\n(?![ \t])/)) {
    const colon = field.indexOf(':')
    if (colon > 0) fields.set(field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim())
  }
  return fields
}

function format(fields: ReadonlyMap<string, string>): string {
  return [...fields].map(([name, value]) => (FIELDS.has(name) ? `${name}: ${value}\n` : '')).join('')
}
