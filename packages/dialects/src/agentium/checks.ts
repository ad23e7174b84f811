// What callers give is checked before anything is done. TypeScript checks the same at compile time.
import { IsletError } from '@islet/sdk'
import {
  BACKENDS,
  ENCODINGS,
  type FileEncoding,
  type GitClone,
  LANGUAGES,
  type SandboxAgentConfig,
  type SandboxRunOptions,
  type SeededFile,
  SNAPSHOT_BYTES,
  type SnapshotOptions,
} from './types.ts'

const DAY_SECONDS = 24 * 3600
const PATH_BYTES = 4095

export function bad(message: string, hint?: string): IsletError {
  return new IsletError('bad_request', message, { hint })
}

/** An option whose value is undefined counts as not given. */
export function checkOptions(called: string, options: unknown, names: readonly string[]): void {
  if (options === undefined) return
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw bad(`The options of ${called} must be an object.`, `It takes ${names.join(', ')}.`)
  for (const [name, value] of Object.entries(options))
    if (value !== undefined && !names.includes(name))
      throw bad(`${called} does not know the option ${name.slice(0, 64)}.`, `It takes ${names.join(', ')}.`)
}

export function checkConfig(config: SandboxAgentConfig): void {
  checkOptions('SandboxAgent', config, ['backend', 'remote', 'workspace', 'dockerImage'])
  checkOneOf('backend', config.backend, BACKENDS)
  if (config.dockerImage !== undefined) checkText('dockerImage', config.dockerImage)
  const { workspace = {} } = config
  checkOptions('workspace', workspace, ['files', 'gitClones', 'env'])
  checkEnv('workspace.env', workspace.env)
  for (const [index, file] of checkedList('workspace.files', workspace.files))
    checkSeed(`workspace.files[${index}]`, file)
  for (const [index, clone] of checkedList('workspace.gitClones', workspace.gitClones))
    checkClone(`workspace.gitClones[${index}]`, clone)
}

export function checkRun(called: string, code: string, options: SandboxRunOptions): void {
  const names = ['language', 'timeoutSeconds', 'env', 'cwd', 'signal']
  checkOptions(called, options, called === 'shell' ? names.slice(1) : names)
  if (typeof code !== 'string' || code.includes('\0')) throw bad(`${called} takes text without NUL.`)
  checkOneOf('language', options.language, LANGUAGES)
  checkTimeout(options.timeoutSeconds)
  checkEnv('env', options.env)
  if (options.cwd !== undefined) checkPath(options.cwd)
}

export function checkWrite(path: string, contents: string, encoding: FileEncoding | undefined): void {
  checkPath(path)
  checkContents(path, contents, encoding)
}

export function checkPath(path: unknown): asserts path is string {
  if (typeof path !== 'string' || path === '' || path.includes('\0') || Buffer.byteLength(path) > PATH_BYTES)
    throw new IsletError('invalid_path')
}

export function checkEncoding(encoding: FileEncoding | undefined): void {
  checkOneOf('encoding', encoding, ENCODINGS)
}

export function checkContents(what: string, contents: unknown, encoding: FileEncoding | undefined): void {
  checkEncoding(encoding)
  if (typeof contents !== 'string') throw bad(`The contents of ${what} must be text.`)
  if (encoding === 'base64' && !isBase64(contents)) throw bad(`The contents of ${what} are not base64.`)
}

export function checkEnv(what: string, env: unknown): void {
  if (env === undefined) return
  if (typeof env !== 'object' || env === null) throw bad(`${what} must be an object.`)
  for (const [name, value] of Object.entries(env))
    if (!/^[^=\0]+$/.test(name) || typeof value !== 'string' || value.includes('\0'))
      throw bad(`${what}: ${name.slice(0, 64)} must be a name and a text, without NUL.`)
}

export function checkedSnapshotOptions(options: SnapshotOptions): Required<SnapshotOptions> {
  checkOptions('snapshot', options, ['ignore', 'maxBytes'])
  const { ignore = [], maxBytes = SNAPSHOT_BYTES } = options
  for (const [, entry] of checkedList('ignore', ignore)) checkPath(entry)
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0) throw bad('maxBytes must be a number of bytes.')
  return { ignore, maxBytes }
}

function checkSeed(what: string, file: SeededFile): void {
  checkOptions(what, file, ['path', 'contents', 'encoding'])
  checkWrite(file.path, file.contents, file.encoding)
}

function checkClone(what: string, clone: GitClone): void {
  checkOptions(what, clone, ['repo', 'path', 'ref', 'depth', 'timeoutSeconds'])
  checkText(`${what}.repo`, clone.repo)
  checkPath(clone.path)
  if (clone.repo.startsWith('-') || /^[\w+.-]*::/.test(clone.repo))
    throw bad(`${what}.repo is not the address of a repository.`, 'Use https, ssh or git, or a path.')
  if (clone.ref !== undefined) {
    checkText(`${what}.ref`, clone.ref)
    if (clone.ref.startsWith('-')) throw bad(`${what}.ref is not a branch, tag or commit.`)
  }
  if (clone.depth !== undefined && !(Number.isSafeInteger(clone.depth) && clone.depth > 0))
    throw bad(`${what}.depth must be a whole number above 0.`)
  checkTimeout(clone.timeoutSeconds)
}

function checkedList<Item>(what: string, list: readonly Item[] | undefined): Iterable<[number, Item]> {
  if (list !== undefined && !Array.isArray(list)) throw bad(`${what} must be a list.`)
  return (list ?? []).entries()
}

function checkTimeout(seconds: number | undefined): void {
  if (seconds === undefined) return
  if (typeof seconds !== 'number' || !(seconds > 0 && seconds <= DAY_SECONDS))
    throw bad('timeoutSeconds must be a number above 0, and at most a day.')
}

function checkText(what: string, value: unknown): void {
  if (typeof value !== 'string' || value === '' || value.includes('\0'))
    throw bad(`${what} must be text, and not empty.`)
}

function checkOneOf(what: string, value: unknown, known: readonly string[]): void {
  if (value !== undefined && !known.includes(value as string))
    throw bad(`${what} must be one of ${known.join(', ')}.`)
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
}
