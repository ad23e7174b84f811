// Signed URLs: each allows one method on one file until it expires.
import { basename } from 'node:path/posix'
import { DEFAULTS, IsletError } from '@islet/contract'
import type { Grants } from '../../tokens.ts'
import { createDownload } from '../http/download.ts'
import { type GrantedCall, granted, signedUrl } from '../http/signed-url.ts'
import { type ApiDeps, Bytes, type Handlers } from '../route.ts'

export function signedFileRoutes(deps: ApiDeps) {
  const { files, tokens } = deps
  const download = createDownload(files)
  return {
    signFile: async ({ params, body, headers, caller }) => {
      const { method, expiresIn: lifetimeMs = DEFAULTS.tokenMs } = body
      const grant = { sandboxId: params.id, path: files.resolve(params.id, body.path), method }
      const signing = { kind: 'file', grant, lifetimeMs, path: '/v1/signed-files' } as const
      return { ...signedUrl(deps, signing, { headers, caller }), method }
    },
    downloadSigned: async (call) => {
      const { sandboxId, path } = await ofMethod('GET', call)
      await call.use(sandboxId)
      const { body, headers, status } = await download(sandboxId, path, call)
      return new Bytes(body, { ...headers, 'Content-Disposition': attachment(path) }, status)
    },
    uploadSigned: async (call) => {
      const { sandboxId, path } = await ofMethod('PUT', call)
      await call.use(sandboxId)
      return files.write(sandboxId, path, call.body, { signal: call.signal })
    },
  } satisfies Partial<Handlers>

  async function ofMethod(method: 'GET' | 'PUT', call: GrantedCall): Promise<Grants['file']> {
    const grant = await granted(tokens, 'file', call, '/v1/sandboxes/{id}/files/sign')
    if (grant.method === method) return grant
    throw new IsletError('forbidden', `This URL is for ${grant.method === 'GET' ? 'downloads' : 'uploads'}.`)
  }
}

/** An ASCII name that every browser reads, and the real name beside it. */
function attachment(path: string): string {
  const name = basename(path) || 'file'
  const plain = name.replace(/[^A-Za-z0-9._ -]/g, '_')
  const coded = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return plain === name
    ? `attachment; filename="${name}"`
    : `attachment; filename="${plain}"; filename*=UTF-8''${coded}`
}
