// Runtimes of the catalog that are npm packages over the Debian base, so that they need no registry of images. The programs are in the
// packages of one platform each; the packages `bun`, `deno` and `node` would fetch them in install scripts.
import { readFileSync } from 'node:fs'
import type { PackageSet } from '@islet/contract'

export interface Recipe extends PackageSet {
  description: string
  /** Commands that npm does not link, with their file below the global node_modules. */
  commands: Record<string, string>
  /** The command that tells the version, to be shown under this name. */
  told?: string
  env?: Record<string, string>
}

const isArm = process.arch === 'arm64'
const node = `node-linux-${process.arch}`
const deno = `@deno/linux-${process.arch}-glibc`

export const RECIPES: ReadonlyMap<string, Recipe> = new Map(
  Object.entries<Recipe>({
    'node:24': { ...ofNpm(), description: 'Node 24 on Debian' },
    'node:22': {
      ...ofNpm(`${node}@22`),
      description: 'Node 22 on Debian',
      told: 'node',
      // The headers of the base belong to its own Node.
      env: { npm_package_config_node_gyp_nodedir: `/usr/local/lib/node_modules/${node}` },
    },
    'bun:1': {
      ...ofNpm(`${bun()}@1`),
      description: 'Bun 1, and Node, on Debian',
      commands: { bun: `${bun()}/bin/bun`, bunx: `${bun()}/bin/bun` },
      told: 'bun',
    },
    'deno:2': {
      ...ofNpm(`${deno}@2`),
      description: 'Deno 2, and Node, on Debian',
      commands: { deno: `${deno}/deno` },
      told: 'deno',
    },
    claude: {
      ...ofNpm('@anthropic-ai/claude-agent-sdk'),
      description: 'The Claude Agent SDK, and Node, on Debian',
    },
  }),
)

function ofNpm(...packages: string[]): PackageSet & Pick<Recipe, 'commands'> {
  return { dependencies: [], packages, pip: [], commands: {} }
}

/** Bun has another build for older processors. */
function bun(): string {
  if (isArm) return '@oven/bun-linux-aarch64'
  return /\bavx2\b/.test(cpuInfo()) ? '@oven/bun-linux-x64' : '@oven/bun-linux-x64-baseline'
}

function cpuInfo(): string {
  try {
    return readFileSync('/proc/cpuinfo', 'utf8')
  } catch {
    return ''
  }
}
