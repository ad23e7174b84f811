// Packages that are installed before a sandbox begins. The patterns leave no room for options, paths, URLs or shell syntax, and for
// nothing that an installer would read as another instruction: apt removes `name-`.
import { z } from 'zod'
import { LIMITS } from '../limits.ts'

const APT = /^[a-z0-9][a-z0-9+.-]*[a-z0-9+](?:=[0-9][A-Za-z0-9.+:~-]*)?$/
const NPM = /^(?:@[A-Za-z0-9][\w.~-]*\/)?[A-Za-z0-9][\w.~-]*(?:@[\^~]?[A-Za-z0-9][\w.+-]*)?$/
const PIP_VERSION = '(?:===?|~=|!=|<=?|>=?)[A-Za-z0-9][A-Za-z0-9.+!*-]*'
const PIP = new RegExp(
  `^[A-Za-z0-9][\\w.-]*(?:\\[[A-Za-z0-9][\\w.-]*(?:,[A-Za-z0-9][\\w.-]*)*\\])?(?:${PIP_VERSION}(?:,${PIP_VERSION})*)?$`,
)
/** npm and pip take such a word for a file. */
const ARCHIVE = /\.(?:tgz|tar|gz|bz2|xz|lz|lzma|tbz|txz|tlz|zip|whl)$/i

function packageList(pattern: RegExp, what: string) {
  const name = z
    .string()
    .max(LIMITS.packageNameLength)
    .regex(pattern, what)
    .refine((text) => !ARCHIVE.test(text), what)
  return z.array(name).max(LIMITS.packages).optional()
}

export const packageFields = {
  dependencies: packageList(
    APT,
    "a Debian package is a name, or name=version, like 'jq' or 'jq=1.6-2.1'",
  ).meta({
    description: 'Debian packages, as name or name=version. Installed once for each set, then kept.',
  }),
  packages: packageList(
    NPM,
    "an npm package is a name, or name@version, like 'cowsay' or '@types/node@^24'",
  ).meta({ description: 'npm packages to install globally, as name, name@version or name@^version.' }),
  pip: packageList(
    PIP,
    "a Python package is a name with extras and versions, like 'six' or 'httpx[http2]>=0.27,<1'",
  ).meta({ description: 'Python packages, as names with extras and versions; no URLs and no options.' }),
}

/** A set of packages of all installers. */
export interface PackageSet {
  dependencies: string[]
  packages: string[]
  pip: string[]
}

export const hasPackages = ({ dependencies = [], packages = [], pip = [] }: Partial<PackageSet>): boolean =>
  dependencies.length + packages.length + pip.length > 0

/** What a saved state holds is never changed by an installer. */
export const packagesNeedRuntime = (input: Partial<PackageSet> & { snapshot?: unknown }): boolean =>
  input.snapshot === undefined || !hasPackages(input)
export const PACKAGES_NEED_RUNTIME =
  'packages are installed over a runtime: leave snapshot out, or install them in a sandbox and make a snapshot of it'
