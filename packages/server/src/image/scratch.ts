// For the tests of this folder: temporary directories, trees from a table, tars byte by byte.
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createImages, type ImagesOptions } from './images.ts'
import { removeTree } from './staging.ts'

export interface Scratch extends AsyncDisposable {
  path: string
  images(options?: Partial<ImagesOptions>): ReturnType<typeof createImages>
}

export async function scratch(): Promise<Scratch> {
  const path = await mkdtemp(join(tmpdir(), 'islet-image-'))
  return {
    path,
    images: (options = {}) =>
      createImages({ imagesDir: join(path, 'images'), inUse: async () => new Set(), ...options }),
    [Symbol.asyncDispose]: () => removeTree(path),
  }
}

/** Makes files from `path: content`; the content `-> target` makes a symlink, a path that ends with / a directory. */
export async function plant(
  root: string,
  files: Record<string, string>,
  modes: Record<string, number> = {},
): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    const at = join(root, path)
    await mkdir(path.endsWith('/') ? at : dirname(at), { recursive: true })
    if (content.startsWith('-> ')) await symlink(content.slice(3), at)
    else if (!path.endsWith('/')) await writeFile(at, content)
    if (modes[path] !== undefined) await chmod(at, modes[path])
  }
}

/** Lists files with an overlay attribute, which the kernel would take for its own marks. */
export function overlayMarks(root: string): string {
  const script =
    'import os,sys\nfor d,ds,fs in os.walk(sys.argv[1]):\n  for n in ["."]+ds+fs:\n    p=os.path.join(d,n)\n    for x in os.listxattr(p,follow_symlinks=False):\n      if "overlay" in x: print(p,x)'
  return execFileSync('/usr/bin/python3', ['-c', script, root]).toString()
}

export interface TarEntry {
  name: string
  /** 0 file, 1 hard link, 2 symbolic link, 3 character device, 5 directory. */
  type?: '0' | '1' | '2' | '3' | '5'
  content?: string
  target?: string
  mode?: number
  uid?: number
  xattrs?: Record<string, string>
}

/** A tar with exactly these names, also names that no tar program would write. */
export function tarOf(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const pax = Object.entries(entry.xattrs ?? {})
      .map(([key, value]) => paxRecord(`SCHILY.xattr.${key}`, value))
      .join('')
    const extended = pax ? [header({ name: 'pax', content: pax }, 'x'), padded(pax)] : []
    return [...extended, header(entry, entry.type ?? '0'), padded(entry.content ?? '')]
  })
  return Buffer.concat([...blocks, Buffer.alloc(1024)])
}

function header({ name, content = '', target = '', mode = 0o755, uid = 0 }: TarEntry, type: string): Buffer {
  const block = Buffer.alloc(512)
  const octal = (value: number, at: number, length: number) =>
    block.write(value.toString(8).padStart(length - 1, '0'), at)
  block.write(name, 0)
  octal(mode, 100, 8)
  octal(uid, 108, 8)
  octal(uid, 116, 8)
  octal(Buffer.byteLength(content), 124, 12)
  octal(0, 136, 12)
  block.fill(' ', 148, 156)
  block.write(type, 156)
  block.write(target, 157)
  block.write('ustar\0' + '00', 257)
  octal(0, 329, 8)
  octal(0, 337, 8)
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  )
  return block
}

function padded(content: string): Buffer {
  const bytes = Buffer.from(content)
  return Buffer.concat([bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)])
}

function paxRecord(key: string, value: string): string {
  const body = ` ${key}=${value}\n`
  let length = body.length
  while (String(length).length + body.length !== length) length = String(length).length + body.length
  return `${length}${body}`
}
