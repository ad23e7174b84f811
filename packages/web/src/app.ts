// The page at /play/: one sandbox, for the person who opened a magic link.
import { hasCode, type Sandbox } from '@islet/sdk'
import { button, element } from './dom.ts'
import { filesPanel } from './files.ts'
import { portsPanel } from './ports.ts'
import { openSandbox, signOut } from './session.ts'
import { terminalPanel } from './terminal.ts'

const problem = element('p', { className: 'problem', role: 'alert', hidden: true })

async function start(): Promise<void> {
  const sandbox = await openSandbox()
  if (sandbox) await show(sandbox)
  else showSignedOut('This page needs a magic link.')
}

async function show(sandbox: Sandbox): Promise<void> {
  const { name, runtime, workdir } = await sandbox.getInfo()
  const title = name ?? sandbox.id
  document.title = `${title} · Islet`
  const files = filesPanel(sandbox, { directory: workdir, onError })
  const ports = portsPanel(sandbox, onError)
  const side = element('aside', {}, tabs({ Files: files, Ports: ports }), files, ports)
  const leave = async () => {
    isLeaving = true
    await signOut()
    showSignedOut('You are signed out.')
  }
  document.body.replaceChildren(
    element(
      'header',
      {},
      element('img', { src: 'icon.svg', alt: '', width: 22, height: 22 }),
      element('h1', { textContent: title }),
      element('span', { className: 'note', textContent: name ? `${sandbox.id} · ${runtime}` : runtime }),
      button('Sign out', () => leave().catch(onError)),
    ),
    problem,
    element('main', {}, terminalPanel(sandbox, onError), side),
  )
}

function tabs(panels: Record<string, HTMLElement>): HTMLElement {
  const all = Object.entries(panels).map(([name, panel]) => {
    const tab = button(name, () => choose(name))
    tab.role = 'tab'
    return { name, panel, tab }
  })
  const choose = (chosen: string) => {
    for (const { name, panel, tab } of all) {
      panel.hidden = name !== chosen
      tab.ariaSelected = String(name === chosen)
    }
  }
  choose(all[0]!.name)
  const list = element('div', { className: 'tabs', role: 'tablist' })
  list.append(...all.map(({ tab }) => tab))
  return list
}

function showSignedOut(title: string): void {
  document.title = 'Islet'
  document.body.replaceChildren(
    element(
      'div',
      { className: 'card' },
      element('img', { src: 'icon.svg', alt: '', width: 40, height: 40 }),
      element('h1', { textContent: title }),
      element('p', {
        textContent:
          'It opens the terminal, the files and the ports of one sandbox. Whoever holds the API key makes a link:',
      }),
      element('pre', { textContent: 'islet link SANDBOX' }),
      element('p', { textContent: 'or, in a program:' }),
      element('pre', { textContent: 'const { url } = await sandbox.magicLinks.create()' }),
      element('p', { className: 'note', textContent: 'A link works once, within five minutes.' }),
    ),
  )
}

let isLeaving = false
let hiding: ReturnType<typeof setTimeout> | undefined

function onError(error: unknown): void {
  if (hasCode(error, 'unauthorized', 'token_expired')) {
    // While it signs out, the terminal is closed by the server.
    if (!isLeaving) showSignedOut('This session has ended.')
    return
  }
  problem.textContent = error instanceof Error ? error.message : String(error)
  problem.hidden = false
  clearTimeout(hiding)
  hiding = setTimeout(() => {
    problem.hidden = true
  }, 10_000)
}

start().catch((error) => {
  document.body.replaceChildren(problem)
  onError(error)
})
