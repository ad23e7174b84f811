// A terminal in the sandbox. A reload of the page attaches to the same one again.
import { hasCode, type PtySession, type Sandbox } from '@islet/sdk'
import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import { button, element } from './dom.ts'

const DARK = {
  background: '#14161b',
  foreground: '#dfe3ea',
  cursor: '#dfe3ea',
  selectionBackground: '#3a4a63',
}
const LIGHT = {
  background: '#ffffff',
  foreground: '#1d2530',
  cursor: '#1d2530',
  selectionBackground: '#b9d8ea',
}

/** A terminal that no page comes back to ends after this time. */
const LEFT = '24h'

export function terminalPanel(sandbox: Sandbox, onError: (error: unknown) => void): HTMLElement {
  const remembered = `islet terminal ${sandbox.id}`
  const isDark = matchMedia('(prefers-color-scheme: dark)')
  const theme = () => (isDark.matches ? DARK : LIGHT)
  const screen = element('div', { className: 'screen' })
  const ended = element('div', { className: 'ended', hidden: true })
  const terminal = new Terminal({
    theme: theme(),
    fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
    fontSize: 13,
    scrollback: 10_000,
    cursorBlink: true,
    minimumContrastRatio: 4.5,
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  isDark.addEventListener('change', () => {
    terminal.options.theme = theme()
  })
  let session: PtySession | undefined
  const send = (data: string | Uint8Array) => session?.send(data).catch(() => {})
  terminal.onData(send)
  terminal.onBinary((data) => send(Uint8Array.from(data, (character) => character.charCodeAt(0))))
  terminal.onResize(({ cols, rows }) => session?.resize(cols, rows))

  const handlers = {
    // Waits for the screen, so that endless output cannot fill the page.
    onOutput: (bytes: Uint8Array) => new Promise<void>((resolve) => terminal.write(bytes, resolve)),
  }

  async function open(): Promise<void> {
    ended.hidden = true
    const size = { cols: terminal.cols, rows: terminal.rows }
    const options = { ...size, ...handlers, maxRunAfterDisconnect: LEFT }
    session = (await attach()) ?? (await sandbox.pty.create(options))
    sessionStorage.setItem(remembered, session.processId)
    session.resize(size.cols, size.rows)
    terminal.focus()
    session.result.then(
      ({ exitCode }) => end(`The shell ended with exit code ${exitCode}.`),
      (error) => {
        end('The connection to the terminal ended.')
        onError(error)
      },
    )
  }

  async function attach(): Promise<PtySession | undefined> {
    const id = sessionStorage.getItem(remembered)
    if (id === null) return undefined
    try {
      const { status } = await sandbox.exec.get(id)
      return status === 'running' ? await sandbox.pty.attach(id, handlers) : undefined
    } catch (error) {
      if (hasCode(error, 'process_not_found', 'invalid_state')) return undefined
      throw error
    }
  }

  function end(text: string): void {
    session = undefined
    sessionStorage.removeItem(remembered)
    const again = button('New terminal', () => {
      terminal.reset()
      open().catch(onError)
    })
    ended.replaceChildren(text, again)
    ended.hidden = false
  }

  // The terminal is measured once it is shown.
  let isOpen = false
  new ResizeObserver(() => {
    if (screen.clientHeight === 0) return
    if (!isOpen) terminal.open(screen)
    fit.fit()
    if (!isOpen) open().catch(onError)
    isOpen = true
  }).observe(screen)
  return element('section', { className: 'shell', ariaLabel: 'Terminal' }, screen, ended)
}
