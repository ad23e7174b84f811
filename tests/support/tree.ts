// A directory inside a sandbox that is changed in every way a filesystem knows, and told from any other by a hash.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { Sandbox } from 'islet'
import { say } from './shell.ts'

const TREE = '/workspace/tree'
const SCRIPT = '/opt/tree.py'

/**
 * Once for a sandbox, before the others. Not `links`: which names are one file does not count, as an overlay takes them apart
 * when a lower one is written to.
 */
export async function plantTree(sandbox: Sandbox, { links = true } = {}): Promise<void> {
  await sandbox.files.write(SCRIPT, PROGRAM, { owner: 'root' })
  if (!links) await sandbox.files.write('/opt/without-links', '', { owner: 'root' })
  await say(sandbox, `mkdir -p ${TREE}`, { user: 'root' })
}

/** For the changes of one test; `TREE_SEED` repeats those of another run. */
export function newSeed(): string {
  return process.env.TREE_SEED ?? randomBytes(8).toString('hex')
}

/** Makes random changes, the same for the same seed; returns the hash of the tree. */
export function changeTree(sandbox: Sandbox, times: number, seed: string): Promise<string> {
  return say(sandbox, ['python3', SCRIPT, TREE, seed, String(times)], { user: 'root' })
}

/** Asserts that the tree is as `changeTree` left it; a failure prints `text` and the seed. */
export async function assertTree(sandbox: Sandbox, hash: string, text: string): Promise<void> {
  const found = await hashTree(sandbox)
  if (found === hash) return
  const differences = await say(sandbox, ['python3', SCRIPT, TREE, 'compare'], { user: 'root' })
  assert.equal(found, hash, `${text}\n${differences}`)
}

/** Over path, type, mode, owner, size, content, link target, time, extended attributes, and which names are one file. */
function hashTree(sandbox: Sandbox): Promise<string> {
  return say(sandbox, ['python3', SCRIPT, TREE], { user: 'root' })
}

/** This many files with this many bytes in all, in directories of 100. */
export async function fillTree(sandbox: Sandbox, files: number, bytes: number): Promise<void> {
  await say(sandbox, ['python3', SCRIPT, TREE, 'fill', String(files), String(bytes)], { user: 'root' })
}

/** Less than `hashTree` looks at, but fast: for many files. */
export function hashArchive(sandbox: Sandbox): Promise<string> {
  return say(sandbox, `tar -C ${TREE} --sort=name --numeric-owner -cf - . | b2sum`, { user: 'root' })
}

const PROGRAM = `
import hashlib, os, random, shutil, socket, stat, sys

top = sys.argv[1]
listed = '/opt/tree.list'
links = not os.path.exists('/opt/without-links')

def every():
    found = [top]
    for directory, names, files in os.walk(top):
        found += [os.path.join(directory, name) for name in names + files]
    return sorted(found)

def list_all():
    lines, seen = [], {}
    for path in every():
        info = os.lstat(path)
        what = [path, info.st_mode, info.st_uid, info.st_gid, info.st_mtime_ns]
        if stat.S_ISLNK(info.st_mode):
            what.append(os.readlink(path))
        else:
            what += sorted((name, os.getxattr(path, name)) for name in os.listxattr(path))
        if stat.S_ISREG(info.st_mode):
            with open(path, 'rb') as file: what += [info.st_size, hashlib.sha256(file.read()).hexdigest()]
        if not stat.S_ISDIR(info.st_mode):
            what += [info.st_nlink, seen.setdefault((info.st_dev, info.st_ino), path)] if links else []
        lines.append(repr(what))
    return lines

# How it differs from what it was after the last change that is part of this state.
def compare():
    with open(listed) as file: then = file.read().splitlines()
    now = list_all()
    lines = ['- ' + line for line in then if line not in now] + ['+ ' + line for line in now if line not in then]
    print('\\n'.join(line[:300] for line in lines[:20]))

def fill(files, size):
    for i in range(files):
        directory = f'{top}/{i // 100}'
        if i % 100 == 0: os.makedirs(directory, exist_ok=True)
        with open(f'{directory}/{i}', 'wb') as file: file.write(os.urandom(size))

def change(rng):
    paths = every()
    directories = [p for p in paths if os.path.isdir(p) and not os.path.islink(p)]
    files = [p for p in paths if os.path.isfile(p) and not os.path.islink(p)]
    below = [p for p in paths if p != top]
    new = os.path.join(rng.choice(directories), f'n{rng.getrandbits(40):x}')
    way = rng.randrange(16)
    if way <= 2 or not files:
        with open(new, 'wb') as file: file.write(rng.randbytes(rng.randrange(5000)))
    elif way == 3: os.mkdir(new, rng.choice([0o755, 0o700, 0o1777]))
    elif way == 4:
        with open(rng.choice(files), 'ab') as file: file.write(b'more')
    elif way == 5:
        with open(rng.choice(files), 'r+b') as file: file.truncate(rng.randrange(100))
    elif way == 6: os.unlink(rng.choice(files))
    elif way == 7: os.symlink(rng.choice(below + ['/nowhere']), new)
    elif way == 8: os.link(rng.choice(files), new)
    elif way == 9: os.mkfifo(new, 0o640)
    elif way == 10:
        here = os.getcwd()
        os.chdir(os.path.dirname(new))
        with socket.socket(socket.AF_UNIX) as s: s.bind(os.path.basename(new))
        os.chdir(here)
    elif way == 11: os.setxattr(rng.choice(files + directories), f'user.n{rng.randrange(3)}', rng.randbytes(8))
    elif way == 12:
        chosen = rng.choice(below)
        os.chown(chosen, rng.randrange(60000), rng.randrange(60000), follow_symlinks=False)
        if not os.path.islink(chosen): os.chmod(chosen, rng.choice([0o600, 0o4755, 0o2750, 0o777]))
    elif way == 13: os.utime(rng.choice(below), ns=(0, rng.getrandbits(60)), follow_symlinks=False)
    else:
        chosen = rng.choice(directories)
        if chosen == top: return
        if way == 14:
            # The same name again, with nothing of what was in it.
            shutil.rmtree(chosen)
            os.mkdir(chosen)
        elif not new.startswith(chosen + '/'): os.rename(chosen, new)

mode = sys.argv[2] if len(sys.argv) > 2 else None
if mode == 'fill': fill(int(sys.argv[3]), int(sys.argv[4]) // int(sys.argv[3]))
elif mode == 'compare': compare()
else:
    rng = random.Random(mode)
    for _ in range(int(sys.argv[3]) if mode else 0): change(rng)
    text = '\\n'.join(list_all())
    if mode:
        with open(listed, 'w') as file: file.write(text)
    print(hashlib.sha256(text.encode()).hexdigest())
`
