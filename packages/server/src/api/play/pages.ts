// GET /play/: the page of a magic link. Its files are the same for everyone; what it shows, it asks the API for, with its cookie.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { builtFile } from './built.ts'

/** By name. The empty name is the page itself. */
const FILES: Record<string, { file: string; type: string }> = {
  '': { file: 'index.html', type: 'text/html; charset=utf-8' },
  'app.js': { file: 'app.js', type: 'text/javascript; charset=utf-8' },
  'style.css': { file: 'style.css', type: 'text/css; charset=utf-8' },
  'icon.svg': { file: 'icon.svg', type: 'image/svg+xml' },
}
/** xterm.js makes style elements, so styles may be inline. Nothing is loaded from elsewhere, and no page may frame this one. */
const POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; connect-src 'self'",
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
].join('; ')
const HEADERS = {
  'Content-Security-Policy': POLICY,
  'Referrer-Policy': 'no-referrer',
  // A page of a preview that opens this one gets no handle to its window.
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

type Page = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>

export const PLAY_PAGES: [path: string, page: Page][] = [
  ['/play', toDirectory],
  ...Object.entries(FILES).map(([name, { file, type }]): [string, Page] => [
    `/play/${name}`,
    async (_, outgoing) => {
      const content = await builtFile(file)
      outgoing.writeHead(200, { ...HEADERS, 'Content-Type': type, 'Content-Length': content.length })
      outgoing.end(content)
    },
  ]),
]

/** Relative, so that a proxy may put the server below a path. */
async function toDirectory(_: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(302, { Location: 'play/', 'Content-Length': 0 }).end()
}
