// The ports on which programs in the sandbox listen, and their preview URLs.
import type { Preview, Sandbox } from '@islet/sdk'
import { button, element } from './dom.ts'

const LOOK_MS = 5000

export function portsPanel(sandbox: Sandbox, onError: (error: unknown) => void): HTMLElement {
  const list = element('ul', { className: 'list' })
  const note = element('p', { className: 'note', role: 'status' })
  const panel = element('section', { className: 'ports', ariaLabel: 'Ports', hidden: true }, note, list)

  async function show(): Promise<void> {
    const [ports, previews] = await Promise.all([sandbox.ports(), sandbox.listPreviewURLs()])
    const numbers = [...new Set(ports.map(({ port }) => port))].sort((one, other) => one - other)
    note.textContent = numbers.length === 0 ? 'No program listens on a port.' : ''
    list.replaceChildren(
      ...numbers.map((port) =>
        row(
          port,
          previews.find((one) => one.port === port),
        ),
      ),
    )
  }

  function row(port: number, preview: Preview | undefined): HTMLElement {
    const open = async () => {
      await sandbox.getUrl({ port })
      await show()
    }
    const make = button(
      'Make a URL',
      () => open().catch(onError),
      'Anyone who can reach this server can open the URL',
    )
    return element(
      'li',
      {},
      element('strong', { textContent: String(port) }),
      preview ? linkTo(preview) : make,
    )
  }

  // Only while it is looked at, because each look keeps the sandbox awake.
  const isSeen = () => panel.isConnected && !panel.hidden && document.visibilityState === 'visible'
  const look = () => {
    if (isSeen()) show().catch(onError)
  }
  setInterval(look, LOOK_MS)
  new MutationObserver(look).observe(panel, { attributes: true, attributeFilter: ['hidden'] })
  return panel
}

function linkTo({ url, authConfig }: Preview): HTMLElement {
  const link = element('a', { href: url, textContent: url, target: '_blank', rel: 'noopener noreferrer' })
  return authConfig ? element('span', {}, link, ' asks for its token') : link
}
