import * as token from '../schemas/token.ts'
import { SANDBOX, tagged } from './route.ts'

const TOKEN = `${SANDBOX}/tokens/{tokenId}` as const

/** What signs someone in needs the API key, so that a token cannot outlive its revocation through another one. */
export const tokenRoutes = tagged('tokens', {
  createToken: {
    method: 'POST',
    path: `${SANDBOX}/token`,
    summary: 'Create a short-lived token for this sandbox only',
    keyOnly: true,
    body: token.createToken,
    response: token.sandboxToken,
    status: 201,
  },
  createSessionToken: {
    method: 'POST',
    path: `${SANDBOX}/tokens`,
    summary: 'Create a session token for this sandbox only: it lasts longer and can be revoked',
    keyOnly: true,
    body: token.createSessionToken,
    response: token.sessionToken,
    status: 201,
  },
  listSessionTokens: {
    method: 'GET',
    path: `${SANDBOX}/tokens`,
    summary: 'List the session tokens, newest first, without their values',
    keyOnly: true,
    response: token.sessionTokenList,
  },
  getSessionToken: {
    method: 'GET',
    path: TOKEN,
    summary: 'Get one session token, without its value',
    keyOnly: true,
    response: token.sessionTokenInfo,
  },
  revokeSessionToken: {
    method: 'DELETE',
    path: TOKEN,
    summary: 'Revoke a session token at once: what it has open is closed; no effect if it is gone',
    keyOnly: true,
    response: null,
  },
  createMagicLink: {
    method: 'POST',
    path: `${SANDBOX}/links`,
    summary: 'Create a URL that signs one browser in to this sandbox, once',
    keyOnly: true,
    body: token.createMagicLink,
    response: token.magicLink,
    status: 201,
  },
  openMagicLink: {
    method: 'GET',
    path: '/auth/magic/{secret}',
    summary: 'Use up a magic link: sets the cookie of a session and redirects. HEAD does not use it up',
    open: true,
    response: null,
    status: 303,
  },
  getSession: {
    method: 'GET',
    path: '/v1/session',
    summary: 'Get the sandbox that the token or cookie of this request is for',
    ofCaller: true,
    response: token.session,
  },
  endSession: {
    method: 'DELETE',
    path: '/v1/session',
    summary: 'Revoke the session token of this request, and remove its cookie',
    ofCaller: true,
    response: null,
  },
})
