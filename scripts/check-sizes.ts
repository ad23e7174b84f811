// Files fit in the head: 400 lines for TypeScript, 800 for C. Printed files are exempt.
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const files = globSync('**/*.{ts,c,h}', { cwd: root, exclude: ['**/node_modules', '**/build', '**/dist'] })
let tooLong = false
for (const file of files) {
  if (file.endsWith('.gen.ts')) continue
  const lines = readFileSync(root + file, 'utf8').split('\n').length
  const most = file.endsWith('.ts') ? 400 : 800
  if (lines <= most) continue
  console.error(`${file} has ${lines} lines; at most ${most}`)
  tooLong = true
}
process.exitCode = tooLong ? 1 : 0
