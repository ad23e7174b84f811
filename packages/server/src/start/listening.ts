// The certificate and the connection limit, from the settings and this machine.
import { readFileSync } from 'node:fs'
import type { Config } from '../config.ts'
import { Certificate } from '../listen/certificate.ts'
import type { Log } from '../log.ts'

/** The other half of the descriptors is for sandboxes, files and images. */
const OF_DESCRIPTORS = 1 / 2
/** An idle connection takes some 10 KB. */
const MOST = 8192

export function openCertificate(
  { tlsCert: cert, tlsKey: key }: Pick<Config, 'tlsCert' | 'tlsKey'>,
  log: Log,
): Certificate | undefined {
  return cert === undefined || key === undefined ? undefined : new Certificate({ cert, key }, { log })
}

/** Node raises the limit of open files to what the process may have. */
export function maxConnections(): number {
  const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return limit === undefined ? MOST : Math.min(MOST, Math.floor(Number(limit) * OF_DESCRIPTORS))
}
