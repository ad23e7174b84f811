// SandboxAgent on this machine: its files, and snapshots of them.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SandboxAgent, type WorkspaceSnapshot } from '@islet/dialects/agentium'
import { needs } from '../support/programs.ts'
import { failsWith } from '../support/shell.ts'
import { ownWorkspaces, started } from '../support/workspaces.ts'
import { testSeed } from './seeds.ts'

needs('python3')

const { scratch, list: workspacesThere } = ownWorkspaces()

/** A file that no workspace may reach. */
const secret = join(scratch, 'secret')
writeFileSync(secret, 'outside')
const json = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value))

testSeed('agentium/files', {
  'writeFile makes missing directories': async () => {
    await using agent = await started()
    await agent.writeFile('a/b/c.txt', 'one')
    await agent.writeFile('a/b/c.txt', 'é')
    await agent.writeFile('./a/../a/b/d.bin', 'AP8=', 'base64')
    assert.equal((await agent.shell('cat a/b/c.txt; od -An -tx1 a/b/d.bin')).output, 'é 00 ff\n')
    await failsWith(agent.writeFile('a', 'x'), 'is_a_directory')
    await failsWith(agent.writeFile('a/b/c.txt/d', 'x'), 'not_a_directory')
    await failsWith(agent.writeFile('', 'x'), 'invalid_path')
    await failsWith(agent.writeFile('x\0y', 'x'), 'invalid_path')
    await failsWith(agent.writeFile('x', 'A', 'base64'), 'bad_request')
    await failsWith(new SandboxAgent().writeFile('x', ''), 'invalid_state')
  },
  'readFile reads text and base64': async () => {
    await using agent = await started()
    await agent.shell("printf 'é' >text; printf '\\000\\377' >bytes; ln -s text link")
    assert.equal(await agent.readFile('text'), 'é')
    assert.equal(await agent.readFile('link'), 'é')
    assert.equal(await agent.readFile('bytes', 'base64'), 'AP8=')
    const { stdout } = await agent.shell('pwd')
    assert.equal(await agent.readFile(`${stdout!.trim()}/text`), 'é')
    await failsWith(agent.readFile('text', 'latin1' as 'utf8'), 'bad_request')
  },
  'a snapshot has modes, symlinks and empty directories, and is plain JSON': async () => {
    await using agent = await started({ workspace: { env: { A: '1' } } })
    await agent.shell(
      "umask 022; mkdir -p src/empty private; chmod 700 private; echo hi >src/run.sh; chmod 755 src/run.sh; printf '\\377' >bytes; ln -s src/run.sh link; ln -s /nowhere away; mkfifo fifo; mkdir node_modules; echo x >node_modules/x",
    )
    const before = Date.now()
    const snapshot = await agent.snapshot({ ignore: ['node_modules'] })
    assert.ok(snapshot.takenAt >= before && snapshot.takenAt <= Date.now())
    assert.deepEqual(json(snapshot), snapshot)
    assert.deepEqual(snapshot.env, { A: '1' })
    assert.deepEqual(
      snapshot.files.map(({ path, type = 'file', mode, target, contents }) => [
        path,
        type,
        mode ?? target,
        contents,
      ]),
      [
        ['away', 'symlink', '/nowhere', ''],
        ['bytes', 'file', 0o644, '/w=='],
        ['link', 'symlink', 'src/run.sh', ''],
        ['private', 'directory', 0o700, ''],
        ['src/empty', 'directory', 0o755, ''],
        ['src/run.sh', 'file', 0o755, 'aGkK'],
      ],
    )
    assert.equal(snapshot.files.find(({ path }) => path === 'bytes')!.encoding, 'base64')
    await failsWith(agent.snapshot({ maxBytes: 3 }), 'limit_exceeded')
    await failsWith(agent.snapshot({ max: 3 } as object), 'bad_request')
    await agent.shell('touch "$(printf \'a\\377\')"')
    await failsWith(agent.snapshot(), 'not_supported')
    await failsWith(new SandboxAgent().snapshot(), 'invalid_state')
  },
  'resume brings back files and variables, and removes the workspace before': async () => {
    await using agent = await started({
      workspace: { env: { A: '1' }, files: [{ path: 'seed', contents: '' }] },
    })
    await agent.shell(
      'mkdir empty; echo echo ran >run.sh; chmod 755 run.sh; ln -s run.sh link; mkdir -p locked; touch locked/x; chmod 500 locked; rm seed',
    )
    const snapshot = json(await agent.snapshot())
    await agent.shell('rm -r run.sh; touch new')
    await agent.resume(snapshot)
    assert.equal(workspacesThere().length, 1)
    const list = await agent.shell('./link; stat -c "%n %a %F" *; echo $A')
    assert.equal(
      list.output,
      'ran\nempty 755 directory\nlink 777 symbolic link\nlocked 500 directory\nrun.sh 755 regular file\n1\n',
    )
    assert.deepEqual((await agent.snapshot()).files, snapshot.files)

    // The plain JSON of the document.
    const plain = {
      takenAt: 1,
      files: [{ path: 'd/f', contents: 'aGk=', encoding: 'base64' as const }],
      env: { B: '2' },
    }
    await agent.resume(plain)
    assert.equal((await agent.shell('cat d/f; echo " $A $B"')).output, 'hi  2\n')

    const file = { contents: '', encoding: 'base64' as const }
    const wrong: [Partial<WorkspaceSnapshot>, 'bad_request' | 'invalid_path' | 'not_supported'][] = [
      [{ files: 'none' as never }, 'bad_request'],
      [{ files: [{ ...file, path: '../x' }] }, 'invalid_path'],
      [{ files: [{ ...file, path: '/x' }] }, 'invalid_path'],
      [{ files: [{ ...file, path: 'x', contents: '!' }] }, 'bad_request'],
      [{ files: [{ ...file, path: 'x', mode: 0o4755 }] }, 'bad_request'],
      [
        {
          files: [
            { ...file, path: 'x' },
            { ...file, path: 'x' },
          ],
        },
        'bad_request',
      ],
      [
        {
          files: [
            { ...file, path: 'x', type: 'symlink', target: scratch },
            { ...file, path: 'x/y' },
          ],
        },
        'bad_request',
      ],
      [{ version: 2 }, 'not_supported'],
      [{ snapshotId: 'snp-1', files: [] }, 'not_supported'],
    ]
    for (const [part, code] of wrong) await failsWith(agent.resume({ ...plain, ...part }), code)
    assert.equal(await agent.readFile('d/f'), 'hi')
  },
  'readFile is null only for a missing file': async () => {
    await using agent = await started()
    await agent.shell('mkdir -p d; touch d/f; mkfifo fifo; ln -s none dangling; ln -s loop loop')
    for (const path of ['none', 'none/none', 'd/none', 'dangling'])
      assert.equal(await agent.readFile(path), null)
    await failsWith(agent.readFile('d'), 'is_a_directory')
    await failsWith(agent.readFile('.'), 'is_a_directory')
    await failsWith(agent.readFile('d/f/g'), 'not_a_directory')
    await failsWith(agent.readFile('fifo'), 'not_a_file')
    await failsWith(agent.readFile('loop'), 'invalid_path')
    await failsWith(agent.readFile('x'.repeat(5000)), 'invalid_path')
    await failsWith(new SandboxAgent().readFile('none'), 'invalid_state')
  },
  'no path leads out of the workspace': async () => {
    await using agent = await started()
    await agent.shell(
      `ln -s ${secret} file; ln -s ${scratch} directory; ln -s ../../secret up; mkdir in; ln -s ../.. in/up`,
    )
    const paths = [
      '../../secret',
      secret,
      'file',
      'directory/secret',
      'directory/new',
      'up',
      'in/up/secret',
      'in/../../../secret',
      '/etc/hostname',
    ]
    for (const path of paths) {
      await failsWith(agent.readFile(path), 'invalid_path')
      await failsWith(agent.writeFile(path, 'changed'), 'invalid_path')
    }
    assert.equal(readFileSync(secret, 'utf8'), 'outside')
    assert.ok(!existsSync(join(scratch, 'new')))

    // A program exchanges a directory for a symlink all the time: the path is never followed out.
    await agent.shell('mkdir swapped; echo inside >swapped/secret')
    const swap = `import os
while True:
    os.rename('swapped', 'real'); os.symlink(${JSON.stringify(scratch)}, 'swapped'); os.unlink('swapped'); os.rename('real', 'swapped')`
    const swapping = agent.run(swap, { language: 'python' })
    const seen = new Set<string | null>()
    for (let round = 0; round < 400; round++) {
      seen.add(await agent.readFile('swapped/secret').catch(() => null))
      await agent.writeFile('swapped/written', '').catch(() => {})
    }
    assert.ok(!seen.has('outside') && seen.has('inside\n'))
    assert.ok(!existsSync(join(scratch, 'written')))
    await agent.close()
    await swapping
  },
})
