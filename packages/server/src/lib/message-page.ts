// A page with one message, for browsers.
import { escapeHtml } from './html.ts'

export interface MessagePage {
  title: string
  /** What to do about it. */
  hint?: string | undefined
  /** In small print. */
  foot: string
  /** The page loads itself again after so many seconds. */
  reloadSeconds?: number | undefined
}

/** Without scripts. */
export const MESSAGE_PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}

export function messagePage({ title, hint, foot, reloadSeconds }: MessagePage): string {
  const isReloaded = reloadSeconds !== undefined
  const refresh = isReloaded ? `<meta http-equiv="refresh" content="${reloadSeconds}">\n` : ''
  const again = isReloaded ? '<p>This page tries again by itself.</p>\n' : ''
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
${refresh}<title>${escapeHtml(title)}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 20vh auto; padding: 0 1rem; color: #223; background: #fff }
h1 { font-size: 1.3rem } p { margin: .5rem 0 } small { color: #667 }
@media (prefers-color-scheme: dark) { body { color: #dde; background: #181a20 } small { color: #99a } }
</style>
<h1>${escapeHtml(title)}</h1>
${hint ? `<p>${escapeHtml(hint)}</p>\n` : ''}${again}<p><small>${escapeHtml(foot)}</small></p>
</html>
`
}
