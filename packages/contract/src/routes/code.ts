import { LIMITS } from '../limits.ts'
import * as code from '../schemas/code.ts'
import { SANDBOX, tagged } from './route.ts'

export const codeRoutes = tagged('processes', {
  runCode: {
    method: 'POST',
    path: `${SANDBOX}/code`,
    summary: 'Run Python, JavaScript, TypeScript or shell code',
    wakes: true,
    body: code.runCode,
    bodyBytes: LIMITS.codeBodyBytes,
    response: code.codeResult,
  },
})
