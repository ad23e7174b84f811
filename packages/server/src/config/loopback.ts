// Names and addresses of the loopback interface.
import { isIP } from 'node:net'

export function isLoopback(name: string): boolean {
  if (name === 'localhost' || name === '::1' || name.endsWith('.localhost')) return true
  return isIP(name) === 4 && name.startsWith('127.')
}

/** The name in a Host header, without the port and the brackets of IPv6. */
export function hostName(host: string): string {
  return host
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase()
}
