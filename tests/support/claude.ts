// The Claude Agent SDK for tests: installed once by npm into the test cache, because it has a third of a gigabyte, and copied into
// sandboxes from there.
import { execFile } from 'node:child_process'
import { createReadStream, existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import type { AgentEvent, AgentHandlers, Sandbox } from 'islet'
import { cacheEntry } from '../../packages/server/src/image/testing.ts'
import { giveNode, givePackages } from './node-inside.ts'
import { root } from './server.ts'

const SDK = '@anthropic-ai/claude-agent-sdk'
const PROGRAM = `${SDK}-linux-${process.arch}/claude`
const INSIDE = '/usr/local/lib'
const CLAUDE_INSIDE = `${INSIDE}/node_modules/${PROGRAM}`

/** Its node_modules; a sentence if npm cannot give it. */
export async function claudePackage(): Promise<{ modules: string } | { missing: string }> {
  const cache = process.env.ISLET_TEST_CACHE ?? '/var/cache/islet-test'
  const entry = await cacheEntry(cache, `claude-${process.arch}`)
  const modules = join(entry, 'node_modules')
  if (existsSync(join(modules, PROGRAM))) return { modules }
  const staging = await mkdtemp(join(entry, 'new-'))
  try {
    const how = ['--no-audit', '--no-fund', '--ignore-scripts', '--legacy-peer-deps']
    await promisify(execFile)('npm', ['install', ...how, '--prefix', staging, `${SDK}@0.3`])
    // Another test file may have been faster.
    if (!existsSync(modules)) await rename(join(staging, 'node_modules'), modules)
    return { modules }
  } catch (error) {
    return { missing: `npm cannot install ${SDK}: ${(error as Error).message.slice(0, 300)}` }
  } finally {
    await rm(staging, { recursive: true, force: true })
  }
}

/** Node, and the package where npm installs globally. */
export async function giveClaude(sandbox: Sandbox, modules: string): Promise<void> {
  await giveNode(sandbox)
  await givePackages(sandbox, INSIDE, [SDK], modules)
  const program = Readable.toWeb(createReadStream(join(modules, PROGRAM))) as ReadableStream<Uint8Array>
  await sandbox.files.makeDir(dirname(CLAUDE_INSIDE))
  await sandbox.files.write(CLAUDE_INSIDE, program, { mode: 0o755 })
  await sandbox.files.write(join(dirname(CLAUDE_INSIDE), 'package.json'), '{}')
}

/** Variables with which agents ask the model of messages-api.js. */
export const MODEL_ENV = { ANTHROPIC_BASE_URL: 'http://127.0.0.1:8930', ANTHROPIC_API_KEY: 'key-of-the-test' }

/** Resolves when it listens. */
export async function startModel(sandbox: Sandbox): Promise<void> {
  const source = readFileSync(join(root, 'tests/support/messages-api.js'), 'utf8')
  await sandbox.files.write('/opt/model/model.mjs', source)
  const listening = Promise.withResolvers<void>()
  const session = await sandbox.exec.start(['node', '/opt/model/model.mjs', '8930'], {
    onStdout: () => listening.resolve(),
  })
  await listening.promise
  session.close()
}

/** What one client of a session saw. */
export class Seen {
  readonly events: AgentEvent[] = []
  errors = ''
  /** How many events were there when the live ones began. */
  scrollback: number | undefined
  exitCode: number | undefined
  #read = 0
  #wake = () => {}

  readonly handlers: AgentHandlers = {
    onEvent: (event) => {
      this.events.push(event)
      this.#wake()
    },
    onError: (text) => {
      this.errors += text
    },
    onScrollbackEnd: () => {
      this.scrollback = this.events.length
    },
    onExit: (code) => {
      this.exitCode = code
    },
  }

  types(): string[] {
    return this.events.map(({ type }) => type)
  }

  /** The next event of this type, after those that were awaited before. */
  async next(type: string): Promise<AgentEvent> {
    for (;;) {
      const event = this.events[this.#read]
      if (event) this.#read++
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      if (event?.type === type) return event
    }
  }

  /** What the agent says in the next turn, which ends by itself. */
  async answer(): Promise<string | undefined> {
    const { result } = await this.next('result')
    await this.next('turn_complete')
    return result
  }
}
