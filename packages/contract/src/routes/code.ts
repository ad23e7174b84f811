import { LIMITS } from '../limits.ts'
import * as code from '../schemas/code.ts'
import { type Route, SANDBOX } from './route.ts'

export const codeRoutes = {
  runCode: {
    method: 'POST',
    path: `${SANDBOX}/code`,
    summary: 'Run a piece of Python, JavaScript, TypeScript or shell',
    tag: 'processes',
    wakes: true,
    body: code.runCode,
    bodyBytes: LIMITS.codeBodyBytes,
    response: code.codeResult,
    status: 200,
  },
} as const satisfies Record<string, Route>
