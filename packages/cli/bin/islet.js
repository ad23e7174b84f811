#!/usr/bin/env node
// Runs on any Node and starts a newer one if this one is too old. A clone runs TypeScript directly, which needs Node 24; the npm
// package `node` provides it. The published package is compiled and has a newer Node as an optional dependency.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import module from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const packed = new URL('../dist/main.js', import.meta.url)
const isPacked = existsSync(packed)
const OLDEST = isPacked ? [22, 13] : [24, 0]
const here = fileURLToPath(import.meta.url)

/** For the server. By default Node lets young garbage grow to 64 MB, and the heap to several times its live size. */
const SMALL_HEAP = ['--max-semi-space-size=8', '--heap-growing-percent=40']

if (isNewEnough(process.versions.node)) {
  // Users need no warnings about the experimental features of Node that we chose.
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

/** Node reads these flags only at its start, so it restarts as the same process. A Node without execve runs on without them. */
function withSmallHeap() {
  const { execPath, execArgv, argv, env } = process
  const given = [...execArgv, env.NODE_OPTIONS ?? ''].join(' ')
  const flags = SMALL_HEAP.filter((flag) => !given.includes(flag.slice(0, flag.indexOf('='))))
  if (flags.length === 0 || process.execve === undefined) return
  process.execve(execPath, [execPath, ...flags, ...execArgv, here, ...argv.slice(2)])
}

/**
 * The compile cache makes every start more than twice as fast. It is inside the installation, so that it is removed with it. It is
 * used only if the installation belongs to this user: code from the cache runs with the rights of this user.
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
    console.error(`islet: ${node} cannot be run: ${error.message}\nhint: Run npm install again.`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

/** A terminal signals its whole foreground group, so the child already has this signal. */
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
