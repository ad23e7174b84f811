import * as token from '../schemas/token.ts'
import { type Route, SANDBOX } from './route.ts'

export const tokenRoutes = {
  createToken: {
    method: 'POST',
    path: `${SANDBOX}/token`,
    summary: 'A short-lived token for this sandbox alone',
    tag: 'sandboxes',
    body: token.createToken,
    response: token.sandboxToken,
    status: 201,
  },
} as const satisfies Record<string, Route>
