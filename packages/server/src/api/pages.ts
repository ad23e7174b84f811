// What anyone may read: the documentation, and the page at /play/.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { DOCS_PAGES } from './openapi/docs.ts'
import { PLAY_PAGES } from './play/pages.ts'

type Page = (incoming: IncomingMessage, outgoing: ServerResponse) => void | Promise<void>

/** By path, for GET and HEAD. */
export const PAGES = new Map<string, Page>([...DOCS_PAGES, ...PLAY_PAGES])
