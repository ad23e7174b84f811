// A Debian repository with two packages and an npm registry with one, as files that any web server can serve.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** By the name of the package: what runs when it is installed. */
const SETUPS = {
  'hello-islet': 'touch /var/lib/hello-islet\nchown games:games /var/lib/hello-islet',
  // State of a package that is nowhere installed.
  'needy-islet': 'ls /var/lib/another-package',
}

/** A flat repository: deb [trusted=yes] <url> ./ */
export function writeAptRepository(directory: string): void {
  const entries = Object.entries(SETUPS).map(([name, setup]) => writePackage(directory, name, setup))
  writeFileSync(join(directory, 'Packages'), entries.join('\n'))
}

/** A program that says hello. Answers with its entry in the list. */
function writePackage(directory: string, name: string, setup: string): string {
  const control = `Package: ${name}
Version: 1.0
Architecture: all
Maintainer: Islet tests <tests@islet.test>
Description: says hello
`
  const tree = join(directory, 'tree')
  mkdirSync(join(tree, 'DEBIAN'), { recursive: true })
  mkdirSync(join(tree, 'usr/bin'), { recursive: true })
  writeFileSync(join(tree, 'DEBIAN/control'), control)
  writeFileSync(join(tree, 'DEBIAN/postinst'), `#!/bin/sh\nset -e\n${setup}\n`)
  writeFileSync(join(tree, 'usr/bin', name), '#!/bin/sh\necho hello from apt\n')
  for (const path of ['DEBIAN/postinst', `usr/bin/${name}`]) chmodSync(join(tree, path), 0o755)
  const file = `${name}_1.0_all.deb`
  execFileSync('dpkg-deb', ['--root-owner-group', '--build', tree, join(directory, file)], {
    stdio: 'ignore',
  })
  rmSync(tree, { recursive: true })
  const bytes = readFileSync(join(directory, file))
  return `${control}Filename: ./${file}\nSize: ${bytes.length}\nSHA256: ${hash('sha256', bytes, 'hex')}\n`
}

/** tiny-pkg with a program, served below `url`. */
export function writeNpmRegistry(directory: string, url: string): void {
  const tree = join(directory, 'package')
  mkdirSync(tree, { recursive: true })
  const manifest = { name: 'tiny-pkg', version: '1.0.0', bin: { tiny: 'tiny.js' }, main: 'tiny.js' }
  writeFileSync(join(tree, 'package.json'), JSON.stringify(manifest))
  writeFileSync(join(tree, 'tiny.js'), "#!/usr/bin/env node\nconsole.log('hello from npm')\n", {
    mode: 0o755,
  })
  execFileSync('tar', ['--create', '--gzip', '--file', 'tiny-pkg-1.0.0.tgz', 'package'], { cwd: directory })
  rmSync(tree, { recursive: true })
  const bytes = readFileSync(join(directory, 'tiny-pkg-1.0.0.tgz'))
  const dist = {
    tarball: `${url}/tiny-pkg-1.0.0.tgz`,
    shasum: hash('sha1', bytes, 'hex'),
    integrity: `sha512-${hash('sha512', bytes, 'base64')}`,
  }
  const versions = { '1.0.0': { ...manifest, dist } }
  writeFileSync(
    join(directory, 'tiny-pkg'),
    JSON.stringify({ name: 'tiny-pkg', 'dist-tags': { latest: '1.0.0' }, versions }),
  )
}

function hash(algorithm: string, bytes: Buffer, encoding: 'hex' | 'base64'): string {
  return createHash(algorithm).update(bytes).digest(encoding)
}
