// The lines that `islet serve` prints when it is up. The commands in them work when they are typed in this order.
import { accessSync, constants, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { quote } from './format.ts'

export interface BannerOptions {
  url: string
  /** Undefined if the socket could not be created. */
  socketPath: string | undefined
  dataDir: string
  /** The key comes from ISLET_API_KEY, not from the file. */
  isKeyGiven: boolean
  /** Clients find this server without any settings. */
  isDefault: boolean
}

export function bannerLines(options: BannerOptions): [name: string, text: string][] {
  const { socketPath, dataDir, isKeyGiven, isDefault } = options
  const url = reachable(options.url)
  const file = quote(join(dataDir, 'key'))
  const key = isKeyGiven ? '$ISLET_API_KEY' : `$(cat ${file})`
  const lines: [string, string][] = [
    ['islet is up', url],
    ...(socketPath ? [['socket', socketPath] as [string, string]] : []),
    ['key', isKeyGiven ? 'the one in ISLET_API_KEY' : join(dataDir, 'key')],
  ]
  if (!isDefault) {
    const address = `ISLET_URL=${url}${isKeyGiven ? '' : ` ISLET_API_KEY="${key}"`}`
    lines.push(['first', `export ${socketPath ? `ISLET_DATA_DIR=${quote(dataDir)}` : address}`])
  }
  return [
    ...lines,
    ['curl', `curl -H "Authorization: Bearer ${key}" ${url}/v1/info`],
    ['cli', `${ownName()} run 'echo hello'`],
    ['sdk', "import { Sandbox } from 'islet'; const sandbox = await Sandbox.create()"],
    ['docs', `${url}/docs`],
  ]
}

/** Clients cannot call the address that means all addresses of this machine. */
function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

/** `islet` if a shell finds this program under that name, else its path. npm adds directories to PATH that a shell lacks. */
function ownName(): string {
  const self = realpathSync(process.argv[1]!)
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    if (directory.endsWith('node_modules/.bin')) continue
    const path = join(directory, 'islet')
    try {
      accessSync(path, constants.X_OK)
    } catch {
      continue
    }
    return realpathSync(path) === self ? 'islet' : quote(self)
  }
  return quote(self)
}
