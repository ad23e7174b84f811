import { TestServer } from './support/server.ts'
import { baseImageForTests } from '../packages/server/src/image/testing.ts'
import { cpSync, mkdirSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { mkdtempSync } from 'node:fs'
const { imagesDir, image } = await baseImageForTests()
const dataDir = mkdtempSync('/tmp/islet-try-')
mkdirSync(join(dataDir, 'images'))
execFileSync('cp', ['-al', join(imagesDir, image.name), join(dataDir, 'images', image.name)])
execFileSync('cp', [join(imagesDir, 'runtimes.json'), join(dataDir, 'images/')])
await using server = await TestServer.start({ dataDir, env: { ISLET_WARM_MIN: '2' } })
const islet = server.islet()
const T = () => Date.now()
let t = T()
const onProgress = (s: any) => console.log('   ', T() - t, s.stage, s.message)
try {
for (const opts of [{ dependencies: ['cowsay'], packages: ['is-odd-cli'.slice(0,0) || 'cowsay'], pip: ['six'] }, { dependencies: ['cowsay'], packages: ['cowsay'], pip: ['six'] }]) {
  t = T()
  const sandbox = await islet.sandboxes.create({ ...opts, onProgress })
  console.log('created', T() - t)
  const r = await sandbox.exec.run('which cowsay; ls -la /usr/games /usr/local/bin; cowsay hi; /usr/games/cowsay apt; python3 -c "import six; print(six.__version__)"; ls -la /tmp /var/lib/apt/lists /usr/local/lib/node_modules; npm ls -g')
  console.log(r.stdout, r.stderr)
  console.log((await sandbox.getInfo()).image)
}
for (const opts of [{ dependencies: ['nope-nope-nope'] }, { packages: ['nope-nope-nope-nope'] }, { packages: ['cowsay@99'] }, { pip: ['nope-nope-nope'] }, { dependencies: ['jq=9'] }, { dependencies: ['jq-'] }, {runtime: 'host', pip: ['six']}]) {
  t = T()
  await islet.sandboxes.create({ ...opts }).then(() => console.log('??'), (e) => console.log(T() - t, e.code, e.message, e.hint, JSON.stringify(e.details)?.slice(0,1500)))
}
console.log(JSON.stringify((await islet.images.list()).map((i) => [i.name, i.source, i.sizeBytes, i.runtimes])))
} catch (e) { console.log(e, server.output.slice(-3000)) }
