// Signed URLs: each allows one method on one file until it expires.
import { basename } from 'node:path/posix'
import { DEFAULTS, IsletError } from '@islet/contract'
import { addressOf } from '../../access/cookie.ts'
import type { FileGrant } from '../../tokens.ts'
import { createDownload } from '../http/download.ts'
import { type ApiDeps, Bytes, type Handlers } from '../route.ts'

export function signedFileRoutes({ files, tokens, sessions, config }: ApiDeps) {
  const download = createDownload(files)
  return {
    signFile: async ({ params, body: { path, method, expiresIn }, headers, caller }) => {
      const session = caller?.kind === 'sandbox' ? caller.session : undefined
      const tokenId = session?.id
      const grant = { sandboxId: params.id, path: files.resolve(params.id, path), method, tokenId }
      const left = session ? session.expiresAt - Date.now() : Number.POSITIVE_INFINITY
      const issued = tokens.issueGrant(grant, {
        lifetimeMs: Math.min(expiresIn ?? DEFAULTS.tokenMs, left),
      })
      const url = `${addressOf(config, headers.host)}/v1/signed-files?grant=${issued.grant}`
      return { url, method, expiresAt: issued.expiresAt }
    },
    downloadSigned: async ({ query, ...call }) => {
      const { sandboxId, path } = await granted(query.grant, 'GET')
      await call.use(sandboxId)
      const { body, headers, status } = await download(sandboxId, path, call)
      return new Bytes(body, { ...headers, 'Content-Disposition': attachment(path) }, status)
    },
    uploadSigned: async ({ query, body, signal, use }) => {
      const { sandboxId, path } = await granted(query.grant, 'PUT')
      await use(sandboxId)
      return files.write(sandboxId, path, body, { signal })
    },
  } satisfies Partial<Handlers>

  async function granted(text: string, method: FileGrant['method']): Promise<FileGrant> {
    const grant = await verified(text).catch((error) => {
      throw error instanceof IsletError ? refused(error) : error
    })
    if (grant.method === method) return grant
    throw new IsletError('forbidden', `This URL is for ${grant.method === 'GET' ? 'downloads' : 'uploads'}.`)
  }

  async function verified(text: string): Promise<FileGrant> {
    const grant = await tokens.verifyGrant(text)
    if (grant.tokenId !== undefined) sessions.assertUsable(grant.sandboxId, grant.tokenId)
    return grant
  }
}

function refused({ code }: IsletError): IsletError {
  const isLate = code === 'token_expired'
  return new IsletError(
    code,
    isLate
      ? 'This URL has expired.'
      : 'This server did not sign this URL, or the token that made it was revoked.',
    {
      hint: 'POST /v1/sandboxes/{id}/files/sign makes a new one.',
    },
  )
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
