import assert from 'node:assert/strict'
import { test } from 'node:test'
import { say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite()
const sandbox = await suite.create()
const { overlay } = sandbox.files

/** 5,000 files of the application's own, as many in node_modules, all of root's. */
await say(
  sandbox,
  `mkdir -p /opt/template && cd /opt/template && mkdir -p .git logs
   for d in $(seq 50); do
     mkdir -p src/$d node_modules/$d
     for f in $(seq 100); do echo $d-$f > src/$d/$f.ts; : > node_modules/$d/$f.js; done
   done
   ln -s src/1 first; chmod 750 src/7; chmod 755 src/7/7.ts; echo ref > .git/HEAD; echo x > logs/a.log
   chown -R root:root /opt/template`,
  { user: 'root', timeout: '60s' },
)

test('a template of 5,000 files becomes a project of the sandbox user, with node_modules as a link', async () => {
  const begun = await overlay.create({
    source: '/opt/template',
    target: './project',
    ignore: ['.git', '*.log'],
  })
  assert.ok(['pending', 'in_progress'].includes(begun.copyStatus))
  const done = await overlay.waitForCompletion(begun.id, { initialDelayMs: 50 })
  assert.equal(done.copyStatus, 'complete', done.copyError)
  assert.deepEqual(
    { ...done.stats, skipped: done.stats.skipped.toSorted() },
    { copiedFiles: 5001, copiedDirs: 52, linkedDirs: 1, skipped: ['.git', 'logs/a.log'] },
  )
  const count = await say(
    sandbox,
    'find project/ -type f | wc -l; find project/node_modules/ -type f | wc -l',
  )
  assert.deepEqual(count.split('\n'), ['5000', '5000'])
  assert.equal(
    await say(sandbox, 'readlink project/node_modules project/first'),
    '/opt/template/node_modules\nsrc/1',
  )
  assert.equal(await say(sandbox, 'stat -c %a project/src/7 project/src/7/7.ts'), '750\n755')
  const user = await say(sandbox, 'id -u')
  assert.equal(await say(sandbox, `find project ! -type l ! -uid ${user} | wc -l`), '0')
  await say(
    sandbox,
    'echo changed > project/src/1/1.ts && rm project/node_modules && cat /opt/template/src/1/1.ts',
  )
  await overlay.destroy(done.id)
  assert.equal(
    await say(sandbox, 'ls -d project /opt/template/node_modules 2>/dev/null || true'),
    '/opt/template/node_modules',
  )
})
