// The certificate and key of ISLET_TLS_CERT and ISLET_TLS_KEY, read again when a file changes, so that a renewal needs no restart.
// If the new pair does not work (half written, or key and certificate do not match), the old pair stays in use.
import { readFileSync, statSync } from 'node:fs'
import type { Server } from 'node:https'
import { createSecureContext } from 'node:tls'
import { ConfigError } from '../config.ts'
import type { Log } from '../log.ts'

const LOOK_MS = 5000

interface CertificateFiles {
  cert: string
  key: string
}

interface Pair {
  cert: Buffer
  key: Buffer
}

export class Certificate {
  readonly #files: CertificateFiles
  readonly #log: Pick<Log, 'info' | 'warn'>
  readonly #servers = new Set<Server>()
  readonly #timer: NodeJS.Timeout
  #pair: Pair
  #stamp: string

  /** Throws a ConfigError when the files are not a certificate and its key. */
  constructor(
    files: CertificateFiles,
    { log, lookMs = LOOK_MS }: { log: Pick<Log, 'info' | 'warn'>; lookMs?: number },
  ) {
    this.#files = files
    this.#log = log
    try {
      this.#stamp = stampOf(files)
      this.#pair = read(files)
    } catch (error) {
      const { cert, key } = files
      throw new ConfigError([`ISLET_TLS_CERT ${cert} and ISLET_TLS_KEY ${key}: ${(error as Error).message}`])
    }
    this.#timer = setInterval(() => this.#look(), lookMs).unref()
  }

  get pair(): Pair {
    return this.#pair
  }

  /** Gives the server each new pair, until it closes. */
  renew(server: Server): void {
    this.#servers.add(server)
    server.once('close', () => this.#servers.delete(server))
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const { cert, key } = this.#files
    try {
      const stamp = stampOf(this.#files)
      if (stamp === this.#stamp) return
      this.#stamp = stamp
      this.#pair = read(this.#files)
      for (const server of this.#servers) server.setSecureContext(secure(this.#pair))
      this.#log.info({ cert, key }, 'the TLS certificate is a new one')
    } catch (error) {
      // Missing files are looked for again; a broken pair is read again when it changes.
      if (this.#stamp === '') return
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') this.#stamp = ''
      this.#log.warn(
        { err: error, cert, key },
        'the new TLS certificate does not work; the old one stays in use',
      )
    }
  }
}

/** TLS options for this pair. */
export function secure({ cert, key }: Pair) {
  return { cert, key, minVersion: 'TLSv1.2' as const }
}

function read(files: CertificateFiles): Pair {
  const pair = { cert: readFileSync(files.cert), key: readFileSync(files.key) }
  createSecureContext(pair)
  return pair
}

/** Follows links: a renewed certificate is often a new file behind the same link. */
function stampOf({ cert, key }: CertificateFiles): string {
  return [cert, key]
    .map((path) => statSync(path))
    .map(({ mtimeMs, ino, size }) => `${mtimeMs} ${ino} ${size}`)
    .join()
}
