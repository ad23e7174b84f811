// What callers give is checked before anything is done. TypeScript checks the same at compile time.
import { IsletError, type Names, refuseUnknown } from '@islet/sdk'
import {
  BACKENDS,
  ENCODINGS,
  type FileEncoding,
  type GitClone,
  LANGUAGES,
  type SandboxAgentConfig,
  type SandboxRunOptions,
  type SandboxShellOptions,
  type SeededFile,
  SNAPSHOT_BYTES,
  type SnapshotOptions,
  type WorkspaceSpec,
} from './types.ts'

const DAY_SECONDS = 24 * 3600
const PATH_BYTES = 4095

const CONFIG: Names<SandboxAgentConfig> = { backend: 1, remote: 1, workspace: 1, dockerImage: 1 }
const WORKSPACE: Names<WorkspaceSpec> = { files: 1, gitClones: 1, env: 1 }
const FILE: Names<SeededFile> = { path: 1, contents: 1, encoding: 1 }
const CLONE: Names<GitClone> = { repo: 1, path: 1, ref: 1, depth: 1, timeoutSeconds: 1 }
const SHELL: Names<SandboxShellOptions> = { timeoutSeconds: 1, env: 1, cwd: 1, signal: 1 }
const RUN: Names<SandboxRunOptions> = { ...SHELL, language: 1 }
const SNAPSHOT: Names<SnapshotOptions> = { ignore: 1, maxBytes: 1 }

export function bad(message: string, hint?: string): IsletError {
  return new IsletError('bad_request', message, { hint })
}

export function checkConfig(config: SandboxAgentConfig): void {
  refuseUnknown('SandboxAgent', config, CONFIG)
  checkOneOf('backend', config.backend, BACKENDS)
  if (config.dockerImage !== undefined) checkText('dockerImage', config.dockerImage)
  const { workspace = {} } = config
  refuseUnknown('workspace', workspace, WORKSPACE)
  checkEnv('workspace.env', workspace.env)
  for (const [index, file] of checkedList('workspace.files', workspace.files))
    checkSeed(`workspace.files[${index}]`, file)
  for (const [index, clone] of checkedList('workspace.gitClones', workspace.gitClones))
    checkClone(`workspace.gitClones[${index}]`, clone)
}

export function checkRun(called: string, code: string, options: SandboxRunOptions): void {
  refuseUnknown(called, options, called === 'shell' ? SHELL : RUN)
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
  refuseUnknown('snapshot', options, SNAPSHOT)
  const { ignore = [], maxBytes = SNAPSHOT_BYTES } = options
  for (const [, entry] of checkedList('ignore', ignore)) checkPath(entry)
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0) throw bad('maxBytes must be a number of bytes.')
  return { ignore, maxBytes }
}

function checkSeed(what: string, file: SeededFile): void {
  refuseUnknown(what, file, FILE)
  checkWrite(file.path, file.contents, file.encoding)
}

function checkClone(what: string, clone: GitClone): void {
  refuseUnknown(what, clone, CLONE)
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
