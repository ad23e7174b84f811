// Packages that only some backends need. They are optional: the user installs them, and they are loaded when they are used.
import { IsletError } from '@islet/sdk'

/** The first of the packages that is installed. */
export async function load<Module>(names: readonly [string, ...string[]], purpose: string): Promise<Module> {
  for (const name of names) {
    try {
      const module = await import(name)
      // A CommonJS package is the default export.
      return { ...module.default, ...module }
    } catch (error) {
      if (!isMissing(error, name)) throw error
    }
  }
  throw new IsletError('not_supported', `${names[0]} is required for ${purpose}.`, {
    hint: `Install it: npm install ${names[0]}`,
  })
}

/** Not an error about another package, which the package itself needs. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = error as { code?: string; message?: string }
  const isNotFound = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
  return isNotFound && (message ?? '').includes(`'${name}'`)
}
