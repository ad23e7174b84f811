import type { Islet } from 'islet'
import type { Sandbox } from 'islet/computesdk'
import type { TestServer } from '../../support/server.ts'

/** What the programs share. */
export interface World {
  server: TestServer
  islet: Islet
  /** Has /app with a package whose programs need nothing, and the command `python`. */
  sandbox: Sandbox
}

/** A server that answers with `text`, for `node -e`; it listens on PORT, or on 3000. */
export function answering(text: string): string {
  return `node -e 'require("http").createServer((_, answer) => answer.end("${text}")).listen(process.env.PORT || 3000)'`
}

/** A package whose dependencies are none, so that npm needs no network. */
export const PACKAGE = JSON.stringify({
  name: 'my-app',
  version: '1.0.0',
  scripts: {
    start: 'node server.js',
    dev: 'node server.js',
    prod: 'node server.js prod',
    test: 'node -e "console.log(\'tests passed\')"',
  },
})

export const SERVER = `
const [, , mode = 'dev'] = process.argv
const { NODE_ENV = 'none', PORT = 3000 } = process.env
require('http').createServer((_, answer) => answer.end(NODE_ENV + ' ' + mode)).listen(PORT)
`
