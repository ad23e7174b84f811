import * as token from '../schemas/token.ts'
import { SANDBOX, tagged } from './route.ts'

export const tokenRoutes = tagged('sandboxes', {
  createToken: {
    method: 'POST',
    path: `${SANDBOX}/token`,
    summary: 'Create a short-lived token for this sandbox only',
    body: token.createToken,
    response: token.sandboxToken,
    status: 201,
  },
})
