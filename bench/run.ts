// npm run bench [-- --docker] [--quick] [--only WORD]: measures this machine and prints the board. README.md says how.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { baseImageForTests } from '../packages/server/src/image/testing.ts'
import { root } from '../tests/support/server.ts'
import { type Board, boardPage, writeBoard, writeGuard } from './board.ts'
import { judged, unmeasured } from './budgets.ts'
import { Docker } from './docker.ts'
import type { Figure } from './figure.ts'
import { burstFigure } from './figures/burst.ts'
import { createFigure } from './figures/create.ts'
import { execFigure } from './figures/exec.ts'
import { filesFigure } from './figures/files.ts'
import { interactiveFigure } from './figures/interactive.ts'
import { memoryFigure } from './figures/memory.ts'
import { previewFigure } from './figures/preview.ts'
import { scaleFigure } from './figures/scale.ts'
import { stateFigure } from './figures/state.ts'
import { storeFigure } from './figures/store.ts'
import { streamFigure } from './figures/stream.ts'
import { watchFigure } from './figures/watch.ts'
import { Floor } from './floor/floor.ts'
import { thisMachine } from './machine.ts'
import { failures, Tally } from './measure.ts'
import { measureRatios } from './ratios.ts'

const FIGURES: Record<string, Figure> = {
  create: createFigure,
  burst: burstFigure,
  interactive: interactiveFigure,
  exec: execFigure,
  stream: streamFigure,
  store: storeFigure,
  files: filesFigure,
  preview: previewFigure,
  watch: watchFigure,
  state: stateFigure,
  memory: memoryFigure,
  scale: scaleFigure,
}
// The cleanup of one figure must not slow the next.
const SETTLE_MS = 1000

const { values } = parseArgs({
  options: { docker: { type: 'boolean' }, quick: { type: 'boolean' }, only: { type: 'string' } },
})

if (values.docker) execFileSync(join(root, 'scripts/setup'), ['--bench'], { stdio: 'inherit' })
const started = performance.now()
const base = await baseImageForTests()
const imageRoot = join(base.imagesDir, base.image.name, 'root')
await using floor = await Floor.start(imageRoot)
await using docker = values.docker ? await Docker.start(imageRoot) : undefined
const machine = thisMachine(await docker?.version())
const board: Board = { machine, methods: {}, rows: [], failures }

for (const [name, { method, measure }] of Object.entries(FIGURES)) {
  if (values.only && !name.includes(values.only)) continue
  execFileSync('sync')
  await setTimeout(SETTLE_MS)
  console.error(`measuring ${name} (${Math.round((performance.now() - started) / 1000)} s)`)
  board.methods[name] = method
  try {
    board.rows.push(...judged(await measure({ floor, docker, quick: values.quick ?? false })))
  } catch (error) {
    // Continue with the other figures.
    new Tally(name).fail(error)
    console.error(error)
  }
}

const isWhole = !values.quick && !values.only
if (isWhole) failures.push(...unmeasured(board.rows).map((id) => `${id} has a budget and was not measured`))
const ratios = isWhole ? await measureRatios(floor) : undefined
console.log(boardPage(board))
console.error(`took ${Math.round((performance.now() - started) / 1000)} s`)
if (failures.length > 0) process.exitCode = 1
if (ratios) {
  writeBoard(board)
  writeGuard(machine, ratios)
  console.error('written to bench/results, README.md and docs/performance.md')
}
