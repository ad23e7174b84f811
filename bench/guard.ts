// node bench/guard.ts [--update]: measures a few figures as multiples of the floor, in half a minute, and compares them with the last board. It reports
// ratios that got worse by more than a third, without failing, because machines differ; it fails if an operation fails.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { baseImageForTests } from '../packages/server/src/image/testing.ts'
import { root } from '../tests/support/server.ts'
import { GUARD_FILE, writeGuard } from './board.ts'
import { Floor } from './floor/floor.ts'
import { thisMachine } from './machine.ts'
import { failures } from './measure.ts'
import { measureRatios, type Ratios, worsened } from './ratios.ts'

const { values } = parseArgs({ options: { update: { type: 'boolean' } } })
const base = await baseImageForTests()
await using floor = await Floor.start(join(base.imagesDir, base.image.name, 'root'))
const ratios = await measureRatios(floor)
if (values.update) writeGuard(thisMachine(undefined), ratios)
const known = JSON.parse(readFileSync(join(root, GUARD_FILE), 'utf8')) as { ratios: Ratios }

console.log('Speed, as multiples of the least that this machine needs:')
for (const [name, ratio] of Object.entries(ratios))
  console.log(`  ${name}: ${ratio} (${known.ratios[name] ?? 'new'} in ${GUARD_FILE})`)
const worse = worsened(ratios, known.ratios)
if (worse.length === 0) console.log('Nothing got worse by more than a third.')
for (const line of worse) console.log(`WORSE: ${line}`)
if (failures.length > 0) {
  console.log(`Failed operations: ${failures.length}`)
  process.exitCode = 1
}
