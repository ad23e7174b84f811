// A dev server in a sandbox, opened through a preview in a real browser, with hot reload.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { chromium } from 'playwright-core'
import { giveNode, givePackages } from '../support/node-inside.ts'
import { needs } from '../support/programs.ts'
import { startSuite } from '../support/suite.ts'

const PACKAGES = ['vite', 'esbuild', '@esbuild', 'rollup', 'postcss', 'nanoid', 'picocolors', 'source-map-js']
const PAGE =
  '<!doctype html><title>Vite</title><h1 id="greeting"></h1><script type="module" src="/main.js"></script>'
const MAIN = `
import { greeting } from './greeting.js'
const show = (text) => { document.querySelector('#greeting').textContent = text }
show(greeting)
import.meta.hot.accept('./greeting.js', (changed) => show(changed.greeting))
`

needs('chromium')
const suite = await startSuite()
const sandbox = await suite.create()
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  // Root has no sandbox of Chromium's own; the page is ours.
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
})
after(() => browser.close())

test('a Vite page is shown, and changes with its source without being loaded again', async () => {
  await giveNode(sandbox)
  await givePackages(sandbox, 'site', PACKAGES)
  await sandbox.files.write('site/index.html', PAGE)
  await sandbox.files.write('site/main.js', MAIN)
  await sandbox.files.write('site/greeting.js', "export const greeting = 'hello from the sandbox'\n")
  const vite = await sandbox.service.start({
    name: 'web',
    path: 'site',
    start: 'node node_modules/vite/bin/vite.js --host 127.0.0.1 --port $PORT --strictPort',
    port: 5173,
    strictPort: true,
  })
  assert.equal(vite.port, 5173)
  const url = await sandbox.getUrl({ port: 5173 })
  const page = await browser.newPage()
  const shows = (text: string) => page.locator('#greeting', { hasText: text }).waitFor({ timeout: 60_000 })
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(String(error)))
  const sockets: string[] = []
  page.on('websocket', (socket) => sockets.push(socket.url()))

  // Until Vite listens, the page of the preview tries again by itself.
  await page.goto(url)
  await shows('hello from the sandbox')
  await page.evaluate("window.kept = 'since the first load'")
  await sandbox.files.write('site/greeting.js', "export const greeting = 'changed while you looked'\n")
  await shows('changed while you looked')
  assert.equal(await page.evaluate('window.kept'), 'since the first load')
  assert.ok(
    sockets.some((address) => address.startsWith(url.replace('http', 'ws'))),
    String(sockets),
  )
  assert.deepEqual(problems, [])
})
