// The session of this page: a cookie that a magic link set. Scripts cannot read it; the browser sends it, and the server takes it only
// together with the header below.
import { Islet, type Sandbox } from '@islet/sdk'

/** The server's address, also behind a proxy that puts it below a path. */
const SERVER = new URL('..', location.href).href.replace(/\/$/, '')

/** Tells the server that this page asks: a page of another origin may not send it. */
const own: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers)
  headers.set('X-Islet-Page', '1')
  return fetch(input, { ...init, headers, credentials: 'same-origin' })
}

/** The sandbox of the cookie; undefined if there is no valid cookie. */
export async function openSandbox(): Promise<Sandbox | undefined> {
  const response = await own(`${SERVER}/v1/session`)
  if (response.status === 401) return undefined
  if (!response.ok) throw new Error(`The server answered ${response.status}.`)
  const { sandboxId } = (await response.json()) as { sandboxId: string }
  return new Islet({ url: SERVER, fetch: own }).sandboxes.connect(sandboxId)
}

/** Revokes the session, so that its cookie is worth nothing wherever it may be. */
export async function signOut(): Promise<void> {
  await own(`${SERVER}/v1/session`, { method: 'DELETE' })
}
