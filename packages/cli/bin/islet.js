#!/usr/bin/env node
// Runs on any Node: hands over to a newer one when this one is too old. A clone runs TypeScript as it is, which takes Node 24, and has
// it from the npm package `node`. The package is compiled, and has Node for old machines as an optional dependency.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import module from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const packed = new URL('../dist/main.js', import.meta.url)
const isPacked = existsSync(packed)
const OLDEST = isPacked ? [22, 13] : [24, 0]
const here = fileURLToPath(import.meta.url)

/** Of the server: by default it lets 64 MB of young garbage and several times its size of old garbage lie around before it looks for some. */
const SMALL_HEAP = ['--max-semi-space-size=8', '--heap-growing-percent=40']

if (isNewEnough(process.versions.node)) {
  // Experimental parts of Node are our choice, not the user's worry.
  const emit = process.emitWarning
  process.emitWarning = (warning, ...rest) => {
    const type = typeof rest[0] === 'object' ? rest[0]?.type : rest[0]
    if (type !== 'ExperimentalWarning') emit.call(process, warning, ...rest)
  }
  if (process.argv[2] === 'serve') withSmallHeap()
  const cache = cacheDirectory()
  if (cache) module.enableCompileCache(cache)
  await import(isPacked ? packed.href : '../src/main.ts')
} else handOver(findNode())

/** Node reads it only as it starts, so it starts over, as the same process; one that is too old to do that goes on as it is. */
function withSmallHeap() {
  const { execPath, execArgv, argv, env } = process
  const given = [...execArgv, env.NODE_OPTIONS ?? ''].join(' ')
  const flags = SMALL_HEAP.filter((flag) => !given.includes(flag.slice(0, flag.indexOf('='))))
  if (flags.length === 0 || process.execve === undefined) return
  process.execve(execPath, [execPath, ...flags, ...execArgv, here, ...argv.slice(2)])
}

/**
 * Compiled code makes every start more than twice as fast. It is kept with the installation, so that it goes with it, and only
 * where the installation is ours: it is run as us.
 */
function cacheDirectory() {
  const modules = findUpwards('node_modules')
  const isOurs = modules && statSync(modules).uid === process.getuid?.()
  return isOurs ? join(modules, '.cache', 'islet') : undefined
}

function isNewEnough(version) {
  const [major, minor] = version.split('.').map(Number)
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])
}

function findNode() {
  const name = isPacked ? `node-${process.platform}-${process.arch}` : 'node'
  return findUpwards(join('node_modules', name, 'bin', 'node'))
}

function findUpwards(path) {
  for (let directory = dirname(here); ; directory = dirname(directory)) {
    const candidate = join(directory, path)
    if (existsSync(candidate)) return candidate
    if (directory === dirname(directory)) return undefined
  }
}

function handOver(node) {
  if (node === undefined) {
    console.error(
      `islet: Node ${OLDEST.join('.')} or newer is needed, this is ${process.version}.\n` +
        'hint: npm install --global node@24, or get it from https://nodejs.org',
    )
    process.exit(1)
  }
  const child = spawn(node, [here, ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH']) {
    process.on(signal, () => {
      if (!isFromTerminal(signal)) child.kill(signal)
    })
  }
  child.on('error', (error) => {
    console.error(`islet: ${node} cannot be run: ${error.message}\nhint: npm install, once more`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

/** A terminal signals its whole foreground group, so the child has this one already. */
function isFromTerminal(signal) {
  if (!['SIGINT', 'SIGQUIT', 'SIGWINCH'].includes(signal)) return false
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1).split(' ')
    const [, , group, , , foreground] = fields
    return group === foreground
  } catch {
    return process.stdin.isTTY === true
  }
}
