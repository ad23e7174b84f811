// npm run soak -- --minutes 60 [--seed n] [--isolation namespace|gvisor] [--report FILE] [--no-disk-full]
//
// Prints what it found as Markdown; --report FILE writes it there, between <!-- soak --> and <!-- /soak -->, and FILE.json beside it when
// --json is given. Ends with 1 at the first difference from the model, with all that is needed to look into it.
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { dataOf, markdownOf, writeReport } from './report.ts'
import { soak } from './soak.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    isolation: { type: 'string', default: 'namespace' },
    report: { type: 'string' },
    json: { type: 'string' },
    'disk-full': { type: 'boolean', default: true },
  },
  allowNegative: true,
})
const [minutes, seed] = [Number(values.minutes), Number(values.seed)]
const { isolation } = values
if (!(minutes > 0) || !Number.isInteger(seed) || (isolation !== 'namespace' && isolation !== 'gvisor')) {
  console.error('--minutes is a number, --seed a whole number, --isolation namespace or gvisor.')
  process.exit(2)
}

console.log(`seed ${seed}`)
try {
  const options = { durationMs: minutes * 60_000, seed, isolation, diskFull: values['disk-full'] } as const
  const soaked = await soak(options)
  console.log(markdownOf(soaked))
  if (values.report) writeReport(values.report, soaked)
  if (values.json) writeFileSync(values.json, `${JSON.stringify(dataOf(soaked), undefined, 2)}\n`)
} catch (error) {
  console.error(error)
  process.exitCode = 1
}
