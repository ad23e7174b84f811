// Node's http, not by an import: an import reads every export, and reading http.WebSocket loads Node's fetch, which takes a tenth
// of the CPU time of a server's start.
const http = process.getBuiltinModule('node:http')

export const { createServer, request, ServerResponse, STATUS_CODES } = http
