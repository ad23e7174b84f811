// The network of sandboxes: one bridge, one firewall table, no rule per sandbox. The warden isolates the ports of the bridge,
// so that sandboxes cannot reach each other.
import { spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { isIPv4 } from 'node:net'
import { IsletError } from '@islet/contract'
import type { Instance } from '../../instance.ts'
import type { Warden } from '../../warden/warden.ts'
import { DnsForwarder, type Upstream } from './dns.ts'

type NetworkPlan = Pick<Instance, 'bridge' | 'table' | 'subnet' | 'prefix' | 'gateway'>

interface NetworkOptions {
  plan: NetworkPlan
  warden: Warden
  log: { warn(fields: object, message: string): void }
  allowRanges?: readonly string[]
  nameservers?: readonly Upstream[]
}

const IP_FORWARD = '/proc/sys/net/ipv4/ip_forward'

// Addresses outside of the internet: this network, private, carrier-grade NAT, loopback, link-local (cloud metadata),
// protocol assignments, benchmarking, multicast, reserved and broadcast.
const DENIED = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
]

/** The most connections of one sandbox. The machine tracks nf_conntrack_max in all: 65,536 on a small one, else 262,144. */
export const MAX_CONNECTIONS = 4096

/** Made when the first sandbox with a network needs it. */
export class Network {
  readonly #options: NetworkOptions
  #made: Promise<void> | undefined
  #dns: DnsForwarder | undefined

  constructor(options: NetworkOptions) {
    this.#options = options
  }

  ensure(): Promise<void> {
    this.#made ??= this.#make().catch((error) => {
      this.#made = undefined
      throw error
    })
    return this.#made
  }

  /** With `all`, also removes the bridge and the firewall. */
  async close({ all = false } = {}): Promise<void> {
    await this.#made?.catch(() => {})
    this.#dns?.close()
    if (!all) return
    await this.#options.warden.request('BRIDGE_DELETE', {})
    await removeFirewall(this.#options.plan)
  }

  async #make(): Promise<void> {
    const { plan, warden, log, allowRanges = [], nameservers } = this.#options
    // The firewall comes first, so that no packet passes without it.
    await installFirewall(plan, allowRanges)
    await warden.request('BRIDGE_CREATE', { address: plan.gateway, prefix: plan.prefix })
    try {
      this.#dns ??= await DnsForwarder.listen({ address: plan.gateway, upstreams: nameservers })
    } catch (error) {
      log.warn({ error }, `Sandboxes cannot resolve names: port 53 of ${plan.gateway} is not available.`)
    }
  }
}

/**
 * Traffic from the bridge to this machine goes through `local`, to elsewhere through `out`; traffic to the bridge must be an
 * answer. The machine's own addresses need no list: packets to them go through `local`. `refuse` sends TCP resets, because the
 * kernel limits ICMP errors per second and programs would wait for the missing ones.
 */
function firewallRules(plan: NetworkPlan, allowRanges: readonly string[]): string {
  const { bridge, table, subnet, prefix, gateway } = plan
  const allowed =
    allowRanges.length > 0 ? `ip daddr { ${allowRanges.map(checkRange).join(', ')} } accept` : ''
  return `table inet ${table} {}
delete table inet ${table}
table inet ${table} {
  set connections {
    type ipv4_addr
    size 65535
    flags dynamic
  }
  chain forward {
    type filter hook forward priority filter - 1; policy accept;
    iifname "${bridge}" goto out
    oifname "${bridge}" goto back
  }
  chain out {
    oifname "${bridge}" drop
    meta nfproto ipv6 drop
    ip saddr != ${subnet}/${prefix} drop
    ct state established,related accept
    ct state new add @connections { ip saddr ct count over ${MAX_CONNECTIONS} } goto refuse
    ${allowed}
    ip daddr { ${DENIED.join(', ')} } goto refuse
    accept
  }
  chain back {
    ct state established,related accept
    drop
  }
  chain input {
    type filter hook input priority filter - 1; policy accept;
    iifname "${bridge}" goto local
  }
  chain local {
    ip saddr != ${subnet}/${prefix} drop
    ct state new add @connections { ip saddr ct count over ${MAX_CONNECTIONS} } goto refuse
    ip daddr ${gateway} udp dport 53 accept
    ip daddr ${gateway} tcp dport 53 accept
    goto refuse
  }
  chain refuse {
    meta l4proto tcp reject with tcp reset
    reject with icmpx admin-prohibited
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${subnet}/${prefix} oifname != "${bridge}" masquerade
  }
}
`
}

async function installFirewall(plan: NetworkPlan, allowRanges: readonly string[]): Promise<void> {
  await nft(firewallRules(plan, allowRanges))
  if ((await readFile(IP_FORWARD, 'utf8')).trim() !== '1') await writeFile(IP_FORWARD, '1')
}

async function removeFirewall(plan: NetworkPlan): Promise<void> {
  await nft(`table inet ${plan.table} {}\ndelete table inet ${plan.table}\n`)
}

/** One transaction, so that the firewall is never incomplete. */
async function nft(script: string): Promise<void> {
  const child = spawn('nft', ['-f', '-'], { stdio: ['pipe', 'ignore', 'pipe'] })
  const { promise, resolve, reject } = Promise.withResolvers<number | null>()
  let talk = ''
  child.stderr.on('data', (chunk) => {
    talk += chunk
  })
  child.once('error', reject).once('close', resolve)
  child.stdin.on('error', () => {}).end(script)
  const code = await promise.catch((cause) => {
    throw new IsletError('engine_unavailable', `nft could not be executed: ${cause.message}.`, {
      hint: 'Install nftables; islet setup does.',
      cause,
    })
  })
  if (code !== 0) throw new IsletError('engine_unavailable', `nft refused the firewall: ${talk.trim()}`)
}

function checkRange(range: string): string {
  const [address = '', bits = '32', ...rest] = range.split('/')
  if (!isIPv4(address) || !/^\d{1,2}$/.test(bits) || Number(bits) > 32 || rest.length > 0) {
    throw new IsletError('bad_request', `"${range}" is not an IPv4 range such as 10.1.0.0/16.`)
  }
  return range
}
