import { LIMITS } from '../limits.ts'
import * as envFile from '../schemas/env-file.ts'
import { type Route, SANDBOX } from './route.ts'

export const envFileRoutes = {
  readEnvFile: {
    method: 'GET',
    path: `${SANDBOX}/env`,
    summary: 'The variables of a .env file',
    tag: 'env files',
    wakes: true,
    query: envFile.envFileQuery,
    response: envFile.envVariables,
    status: 200,
  },
  updateEnvFile: {
    method: 'PATCH',
    path: `${SANDBOX}/env`,
    summary: 'Set variables in a .env file and keep the rest of it as it is',
    tag: 'env files',
    wakes: true,
    query: envFile.envFileQuery,
    body: envFile.updateEnvFile,
    bodyBytes: LIMITS.commandBodyBytes,
    response: envFile.envKeys,
    status: 200,
  },
  removeEnvKeys: {
    method: 'DELETE',
    path: `${SANDBOX}/env`,
    summary: 'Take variables out of a .env file; answers with those that were there',
    tag: 'env files',
    wakes: true,
    query: envFile.removeEnvQuery,
    response: envFile.envKeys,
    status: 200,
  },
} as const satisfies Record<string, Route>
