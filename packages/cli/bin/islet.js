#!/usr/bin/env node
// Runs on any Node: hands over to Node 24 or newer when this one is older (the npm package `node` carries one).
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import module from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const OLDEST_MAJOR = 24
const here = fileURLToPath(import.meta.url)

if (Number(process.versions.node.split('.')[0]) >= OLDEST_MAJOR) {
  // Experimental parts of Node are our choice, not the user's worry.
  const emit = process.emitWarning
  process.emitWarning = (warning, ...rest) => {
    const type = typeof rest[0] === 'object' ? rest[0]?.type : rest[0]
    if (type !== 'ExperimentalWarning') emit.call(process, warning, ...rest)
  }
  const cache = cacheDirectory()
  if (cache) module.enableCompileCache(cache)
  await import('../src/main.ts')
} else handOver(findNode())

/**
 * Compiled code makes every start more than twice as fast. It is kept with the installation, so that it goes with it, and only
 * where the installation is ours: it is run as us.
 */
function cacheDirectory() {
  const modules = findUpwards('node_modules')
  const isOurs = modules && statSync(modules).uid === process.getuid?.()
  return isOurs ? join(modules, '.cache', 'islet') : undefined
}

function findNode() {
  return findUpwards(join('node_modules', 'node', 'bin', 'node'))
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
      `islet: Node ${OLDEST_MAJOR} or newer is needed, this is ${process.version}.\n` +
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
