import assert from 'node:assert/strict'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { CreateOverlay, OverlayInfo, Sandbox } from '@islet/contract'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'

describe('overlays', () => {
  let api: TestApi
  let made: Sandbox
  let source: string
  before(async () => {
    api = await startTestApi()
    made = await api.createSandbox()
    source = at('template')
    plant(source, {
      'package.json': '{}',
      'src/index.ts': 'index',
      'src/deep/er/file.ts': 'deep',
      'src/debug.log': 'log',
      'node_modules/dep/index.js': 'dep',
      'packages/one/node_modules/dep/index.js': 'dep',
      'packages/one/main.js': 'main',
      '.git/HEAD': 'ref',
      'vendor/lib.php': 'php',
    })
    mkdirSync(join(source, 'empty'), { mode: 0o711 })
    symlinkSync('src/index.ts', join(source, 'link'))
    writeFileSync(join(source, 'run.sh'), '', { mode: 0o755 })
  })
  after(() => api[Symbol.asyncDispose]())

  const at = (name: string) => join(made.workdir, name)
  const plant = (root: string, files: Record<string, string>) => {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(root, name)), { recursive: true })
      writeFileSync(join(root, name), content)
    }
  }
  const overlays = (id = made.id) => `/v1/sandboxes/${id}/overlays`
  const create = async (input: CreateOverlay): Promise<OverlayInfo> => {
    const response = await api.call('POST', overlays(), input)
    assert.equal(response.status, 201)
    return (await response.json()) as OverlayInfo
  }
  const get = async (id: string) =>
    (await (await api.call('GET', `${overlays()}/${id}`)).json()) as OverlayInfo
  const ended = async (id: string): Promise<OverlayInfo> => {
    await until(async () => ['complete', 'failed'].includes((await get(id)).copyStatus))
    return get(id)
  }
  const copied = async (input: CreateOverlay) => ended((await create(input)).id)
  const destroy = async (id: string) => {
    assert.equal((await api.call('DELETE', `${overlays()}/${id}`)).status, 204)
  }
  /** Without what is behind links. */
  const filesIn = (root: string): string[] => {
    const found = readdirSync(root, { recursive: true }).map(String).sort()
    const links = found.filter((path) => lstatSync(join(root, path)).isSymbolicLink())
    return found.filter((path) => !links.some((link) => path.startsWith(`${link}/`)))
  }

  it('answer at once, copy in the background, and link what nobody edits', async () => {
    const begun = await create({ source, target: './project' })
    assert.equal(begun.copyStatus, 'pending')
    assert.deepEqual(
      [begun.source, begun.target, begun.strategy, begun.ignore],
      [source, './project', 'smart', []],
    )
    const done = await ended(begun.id)
    assert.equal(done.copyStatus, 'complete', done.copyError)
    assert.deepEqual(done.stats, { copiedFiles: 8, copiedDirs: 7, linkedDirs: 3, skipped: [] })
    for (const name of ['node_modules', 'packages/one/node_modules', 'vendor'])
      assert.equal(readlinkSync(at(`project/${name}`)), join(source, name))
    assert.equal(readFileSync(at('project/packages/one/node_modules/dep/index.js'), 'utf8'), 'dep')
    assert.equal(readFileSync(at('project/src/deep/er/file.ts'), 'utf8'), 'deep')
    assert.equal(readlinkSync(at('project/link')), 'src/index.ts')
    assert.equal(statSync(at('project/run.sh')).mode & 0o777, 0o755)
    assert.equal(statSync(at('project/empty')).mode & 0o777, 0o711)
    await destroy(begun.id)
    assert.ok(!existsSync(at('project')))
    assert.ok(existsSync(join(source, 'node_modules/dep/index.js')), 'what was linked stays')
    assert.equal(
      (await errorOf(await api.call('GET', `${overlays()}/${begun.id}`))).code,
      'overlay_not_found',
    )
  })

  it('copy everything with strategy copy, to an absolute path as well, and leave out what is ignored', async () => {
    const ignore = ['.git', '*.log', 'packages/*/node_modules', join(source, 'vendor'), 'none']
    const done = await copied({ source, target: at('a/b/whole'), strategy: 'copy', ignore })
    assert.equal(done.copyStatus, 'complete', done.copyError)
    const skipped = ['.git', 'packages/one/node_modules', 'src/debug.log', 'vendor']
    assert.deepEqual(done.stats.skipped.toSorted(), skipped)
    assert.equal(done.stats.linkedDirs, 0)
    const left = filesIn(source).filter(
      (path) => !skipped.some((name) => path === name || path.startsWith(`${name}/`)),
    )
    assert.deepEqual(filesIn(at('a/b/whole')), left)
    assert.equal(done.stats.copiedFiles + done.stats.copiedDirs, left.length)
    assert.ok(!lstatSync(at('a/b/whole/node_modules')).isSymbolicLink())
    await destroy(done.id)
    assert.ok(!existsSync(at('a/b/whole')) && existsSync(at('a/b')))
  })

  it('go into a directory that is there, and take away only what they put there', async () => {
    plant(at('mine'), { 'own.txt': 'own', 'src/own.ts': 'own', 'package.json': 'mine' })
    mkdirSync(at('mine/node_modules'))
    const mode = statSync(at('mine')).mode
    symlinkSync('mine', at('mine-too'))
    const done = await copied({ source, target: 'mine-too', ignore: ['.git'] })
    assert.equal(done.copyStatus, 'complete', done.copyError)
    assert.equal(statSync(at('mine')).mode, mode)
    assert.equal(readFileSync(at('mine/package.json'), 'utf8'), '{}')
    assert.equal(readFileSync(at('mine/src/own.ts'), 'utf8'), 'own')
    assert.equal(
      readFileSync(at('mine/node_modules/dep/index.js'), 'utf8'),
      'dep',
      'a real directory is filled',
    )
    assert.ok(lstatSync(at('mine/vendor')).isSymbolicLink())
    assert.deepEqual(done.stats, { copiedFiles: 8, copiedDirs: 8, linkedDirs: 2, skipped: ['.git'] })
    await destroy(done.id)
    assert.deepEqual(readdirSync(at('mine')).sort(), ['node_modules', 'own.txt', 'package.json', 'src'])
    assert.equal(readFileSync(at('mine/src/own.ts'), 'utf8'), 'own')
  })

  it('can be made again over what is there', async () => {
    const first = await copied({ source, target: 'again' })
    writeFileSync(at('again/src/index.ts'), 'changed')
    const second = await copied({ source, target: 'again' })
    assert.equal(second.copyStatus, 'complete', second.copyError)
    assert.deepEqual(second.stats, first.stats)
    assert.equal(readFileSync(at('again/src/index.ts'), 'utf8'), 'index')
    await destroy(second.id)
    assert.ok(existsSync(at('again/src')), 'the first one made it')
    await destroy(first.id)
    assert.ok(!existsSync(at('again')))
  })

  it('that cannot be are refused at once', async () => {
    plant(at('.'), { file: '' })
    symlinkSync('nowhere', at('dangling'))
    symlinkSync('template', at('hidden'))
    const cases: [CreateOverlay, string][] = [
      [{ source: at('none'), target: 'x' }, 'file_not_found'],
      [{ source: at('file'), target: 'x' }, 'not_a_directory'],
      [{ source: 'template', target: 'x' }, 'bad_request'],
      [{ source, target: 'template' }, 'invalid_path'],
      [{ source, target: 'template/src/x' }, 'invalid_path'],
      [{ source, target: 'hidden/y/z' }, 'invalid_path'],
      [{ source, target: '.' }, 'invalid_path'],
      [{ source, target: '/' }, 'invalid_path'],
      [{ source, target: 'file' }, 'not_a_directory'],
      [{ source, target: 'file/x' }, 'not_a_directory'],
      [{ source, target: 'dangling' }, 'not_a_directory'],
      [{ source, target: 'x', ignore: Array(101).fill('a') }, 'bad_request'],
      [{ source, target: 'x', strategy: 'clever' as 'copy' }, 'bad_request'],
    ]
    for (const [input, code] of cases) {
      const error = await errorOf(await api.call('POST', overlays(), input))
      assert.equal(error.code, code, JSON.stringify(input))
    }
    assert.ok(!existsSync(at('x')))
  })

  it('that fail say why and keep what was copied', async () => {
    plant(at('clash'), { 'src/index.ts/in-the-way': '' })
    const done = await copied({ source, target: 'clash' })
    assert.equal(done.copyStatus, 'failed')
    assert.match(done.copyError ?? '', /is a directory/)
    await destroy(done.id)
    assert.deepEqual(filesIn(at('clash')), ['src', 'src/index.ts', 'src/index.ts/in-the-way'])
  })

  it('follow a template that is a link', async () => {
    symlinkSync('template', at('latest'))
    const done = await copied({ source: at('latest'), target: 'from-link', ignore: [`${at('latest')}/src`] })
    assert.equal(done.copyStatus, 'complete', done.copyError)
    assert.deepEqual(done.stats.skipped, ['src'])
    assert.equal(readlinkSync(at('from-link/vendor')), join(source, 'vendor'))
    await destroy(done.id)
  })

  it('go directory by directory when there is too much to leave out at once', async () => {
    const wide = at('wide')
    const noise = (index: number) => `${index % 5}/deep/${'x'.repeat(200)}-${index}.log`
    plant(wide, Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [noise(index), ''])))
    plant(wide, { top: 'top', '0/kept': '0', '4/deep/kept': '4', '1/node_modules/dep/file': 'dep' })
    const done = await copied({ source: wide, target: 'narrow', ignore: ['*.log'] })
    assert.equal(done.copyStatus, 'complete', done.copyError)
    const expected = [
      '0',
      '0/deep',
      '0/kept',
      '1',
      '1/deep',
      '1/node_modules',
      '2',
      '2/deep',
      '3',
      '3/deep',
      '4',
    ]
    assert.deepEqual(filesIn(at('narrow')), [...expected, '4/deep', '4/deep/kept', 'top'])
    assert.equal(readlinkSync(at('narrow/1/node_modules')), join(wide, '1/node_modules'))
    const { skipped, ...counted } = done.stats
    assert.deepEqual(counted, { copiedFiles: 3, copiedDirs: 10, linkedDirs: 1 })
    assert.equal(skipped.length, 1000, 'the first ones')
    await destroy(done.id)
  })

  it('are listed, and counted', async () => {
    const other = await api.createSandbox()
    const elsewhere = join(other.workdir, 'template')
    plant(elsewhere, { file: '' })
    const responses = await Promise.all(
      Array.from({ length: 66 }, (_, index) =>
        api.call('POST', overlays(other.id), { source: elsewhere, target: `copy-${index}` }),
      ),
    )
    const refused = responses.filter(({ status }) => status !== 201)
    assert.equal(refused.length, 2)
    assert.equal((await errorOf(refused[0]!)).code, 'limit_exceeded')
    const list = async () =>
      ((await (await api.call('GET', overlays(other.id))).json()) as { overlays: OverlayInfo[] }).overlays
    await until(async () => (await list()).every(({ copyStatus }) => copyStatus === 'complete'))
    const found = await list()
    assert.equal(found.length, 64)
    assert.equal(readdirSync(other.workdir).filter((name) => name.startsWith('copy-')).length, 64)
    const wrong = await api.call('GET', `${overlays()}/${found[0]!.id}`)
    assert.equal((await errorOf(wrong)).code, 'overlay_not_found', 'one of another sandbox')
    assert.equal((await api.call('DELETE', `/v1/sandboxes/${other.id}`)).status, 200)
    assert.deepEqual(await list(), [])
  })

  it('can be destroyed while they wait or copy, and leave nothing behind', async () => {
    const large = at('large')
    plant(
      large,
      Object.fromEntries(
        Array.from({ length: 2000 }, (_, index) => [`${index % 40}/${index}`, 'x'.repeat(500)]),
      ),
    )
    const begun = await Promise.all(
      Array.from({ length: 6 }, (_, index) => create({ source: large, target: `out-${index}` })),
    )
    await until(async () => (await get(begun[0]!.id)).copyStatus !== 'pending')
    await Promise.all(begun.map(({ id }) => destroy(id)))
    assert.deepEqual(
      readdirSync(made.workdir).filter((name) => name.startsWith('out-')),
      [],
    )
    const { overlays: rest } = (await (await api.call('GET', overlays())).json()) as {
      overlays: OverlayInfo[]
    }
    assert.ok(!rest.some(({ target }) => target.startsWith('out-')))
  })
})
