import { LIMITS } from '../limits.ts'
import * as envFile from '../schemas/env-file.ts'
import { SANDBOX, tagged } from './route.ts'

export const envFileRoutes = tagged('env files', {
  readEnvFile: {
    method: 'GET',
    path: `${SANDBOX}/env`,
    summary: 'Get the variables of a .env file',
    wakes: true,
    query: envFile.envFileQuery,
    response: envFile.envVariables,
  },
  updateEnvFile: {
    method: 'PATCH',
    path: `${SANDBOX}/env`,
    summary: 'Set variables in a .env file; the rest of the file stays as it is',
    wakes: true,
    query: envFile.envFileQuery,
    body: envFile.updateEnvFile,
    bodyBytes: LIMITS.commandBodyBytes,
    response: envFile.envKeys,
  },
  removeEnvKeys: {
    method: 'DELETE',
    path: `${SANDBOX}/env`,
    summary: 'Remove variables from a .env file; the answer lists those that were there',
    wakes: true,
    query: envFile.removeEnvQuery,
    response: envFile.envKeys,
  },
})
