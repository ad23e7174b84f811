// npm run bench [-- --docker] [--quick] [--only WORD]: measures this machine and prints the board. README.md says how.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Sandbox } from 'islet'
import { baseImageForTests } from '../packages/server/src/image/testing.ts'
import { root, TestServer } from '../tests/support/server.ts'
import { Docker } from './docker.ts'
import type { Row } from './figure.ts'
import { createFigure } from './figures/create.ts'
import { execFigure } from './figures/exec.ts'
import { filesFigure } from './figures/files.ts'
import { memoryFigure } from './figures/memory.ts'
import { previewFigure } from './figures/preview.ts'
import { stateFigure } from './figures/state.ts'
import { storeFigure } from './figures/store.ts'
import { streamFigure } from './figures/stream.ts'
import { watchFigure } from './figures/watch.ts'
import { printTable } from './table.ts'

const FIGURES = {
  create: createFigure,
  exec: execFigure,
  stream: streamFigure,
  store: storeFigure,
  files: filesFigure,
  preview: previewFigure,
  memory: memoryFigure,
  watch: watchFigure,
  state: stateFigure,
}
// So that what one figure leaves to be cleaned up is less likely to be in the next one's clock.
const SETTLE_MS = 3000

const { values } = parseArgs({
  options: { docker: { type: 'boolean' }, quick: { type: 'boolean' }, only: { type: 'string' } },
})

if (values.docker) execFileSync(join(root, 'scripts/setup'), ['--bench'], { stdio: 'inherit' })
const base = await baseImageForTests()
await using server = await TestServer.start({
  env: { ISLET_IMAGE_DIR: base.imagesDir, ISLET_LOG_LEVEL: 'warn' },
})
await using docker = values.docker
  ? await Docker.start(join(base.imagesDir, base.image.name, 'root'))
  : undefined
const context = {
  server,
  docker,
  quick: values.quick ?? false,
  create: () => Sandbox.create({ url: server.url, apiKey: server.key }),
}

const rows: Row[] = []
for (const [name, figure] of Object.entries(FIGURES)) {
  if (values.only && !name.includes(values.only)) continue
  console.error(`measuring ${name}`)
  await setTimeout(SETTLE_MS)
  rows.push(...(await figure(context)))
}

const machine = {
  takenAt: new Date().toISOString(),
  commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim(),
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  kernel: release(),
  node: process.version,
  runtime: 'base',
  storage: (await server.islet().info()).storage,
  docker: await docker?.version(),
}
console.log(printTable(rows))
if (!values.quick && !values.only) {
  mkdirSync(join(root, 'bench/results'), { recursive: true })
  writeFileSync(join(root, 'bench/results/latest.json'), `${JSON.stringify({ machine, rows }, null, 2)}\n`)
  console.error('written to bench/results/latest.json')
}
