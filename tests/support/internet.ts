// An internet of one host, in a network namespace of its own: nothing sent to it leaves the machine. Its addresses
// are of documentation ranges, and of private ones to prove that those are denied; which ones depends on the pid, so
// that runs side by side do not meet.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { needs } from './programs.ts'

needs('ip')

const HOST = fileURLToPath(new URL('internet-host.ts', import.meta.url))
const NETWORKS = 29

export class Internet {
  /** The pages that it serves over HTTP. */
  readonly directory = mkdtempSync(join(tmpdir(), 'islet-internet-'))
  /** The machine's address on the wire to it. */
  readonly hostAddress: string
  /** Public: its web server and every name. */
  readonly web: string
  readonly dns: string
  /** Not public, but routed to it and answered all the same. */
  readonly privates: { ten: string; home: string; office: string; linkLocal: string; carrier: string }
  readonly #number = process.pid % NETWORKS
  readonly #name = `islet-e2e-${process.pid}`
  readonly #link = `ie${process.pid}`
  #child: ChildProcess | undefined

  constructor() {
    const n = this.#number
    // From 8 on: lower ones may be this machine's own, or its gateway's.
    this.hostAddress = `192.0.2.${8 + 4 * n + 1}`
    this.web = `198.51.100.${n + 1}`
    this.dns = `198.51.100.${n + 101}`
    this.privates = {
      ten: `10.98.${n}.1`,
      home: `192.168.${n + 100}.1`,
      office: `172.30.${n}.1`,
      linkLocal: `169.254.${n + 100}.1`,
      carrier: `100.100.${n}.1`,
    }
  }

  async start(): Promise<void> {
    const [name, link, peer] = [this.#name, this.#link, `192.0.2.${8 + 4 * this.#number + 2}`]
    ip('netns', 'add', name)
    ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'wire', 'netns', name)
    ip('address', 'add', `${this.hostAddress}/30`, 'dev', link)
    ip('link', 'set', link, 'up')
    ip('-n', name, 'link', 'set', 'lo', 'up')
    ip('-n', name, 'address', 'add', `${peer}/30`, 'dev', 'wire')
    ip('-n', name, 'link', 'set', 'wire', 'up')
    ip('-n', name, 'route', 'add', 'default', 'via', this.hostAddress)
    for (const address of [this.web, this.dns, ...Object.values(this.privates)]) {
      ip('-n', name, 'address', 'add', `${address}/32`, 'dev', 'lo')
      ip('route', 'add', `${address}/32`, 'via', peer)
    }
    mkdirSync(join(this.directory, 'empty'))
    const argv = ['netns', 'exec', name, process.execPath, HOST, this.directory, this.web, this.dns]
    this.#child = spawn('ip', argv, { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(this.#child.stdout!, 'data')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child && this.#child.exitCode === null) {
      this.#child.kill('SIGKILL')
      await once(this.#child, 'exit')
    }
    // Takes the wire and with it the routes along.
    for (const words of [
      ['link', 'delete', this.#link],
      ['netns', 'delete', this.#name],
    ]) {
      try {
        ip(...words)
      } catch {
        // It was never made.
      }
    }
    rmSync(this.directory, { recursive: true, force: true })
  }
}

export function ip(...words: string[]): void {
  execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] })
}
