// Session tokens, magic links and the page at /play/, as their holders use them, across kills of the server and in a real browser.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { hasCode, Islet, type Sandbox } from 'islet'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { needs } from '../support/programs.ts'
import { startSuite } from '../support/suite.ts'

needs('chromium')
const suite = await startSuite()
const sandbox = await suite.create({ name: 'shown' })
const { server } = suite

const crash = async () => {
  await server.kill()
  await server.start()
}
const holder = (token: string): Promise<Sandbox> =>
  new Islet({ url: server.url, token, retries: 0 }).sandboxes.connect(sandbox.id)
const open = (url: string) => fetch(url, { redirect: 'manual' })
const isUnauthorized = (error: unknown) => hasCode(error, 'unauthorized')

describe('a kill -9 of the server', () => {
  test('loses no session token that was given out, and brings back none that was revoked', async () => {
    const kept = await sandbox.sessionTokens.create({ description: 'kept' })
    const revoked = await sandbox.sessionTokens.create()
    await (await holder(revoked.token)).exec.run('true')
    await sandbox.sessionTokens.revoke(revoked.id)
    await crash()
    assert.equal((await (await holder(kept.token)).exec.run('echo kept')).stdout, 'kept\n')
    await assert.rejects(holder(revoked.token), isUnauthorized)
    const listed = await sandbox.sessionTokens.list()
    assert.deepEqual(
      listed.map(({ id }) => id),
      [kept.id],
    )
    await sandbox.sessionTokens.revoke(kept.id)
  })

  test('between issue and use of a magic link loses neither, and after its use the link stays used', async () => {
    const { url } = await sandbox.magicLinks.create()
    await crash()
    const [first, second] = await Promise.all([open(url), open(url)])
    assert.deepEqual([first.status, second.status].sort(), [303, 410])
    const [set] = [...first.headers.getSetCookie(), ...second.headers.getSetCookie()]
    const token = /^islet_session=([^;]+)/.exec(set!)![1]!
    await crash()
    assert.equal((await open(url)).status, 410)
    assert.equal((await (await holder(token)).exec.run('echo in')).stdout, 'in\n')
  })
})

test('revoking a session token ends its terminals and streams at once; copies of the sandbox never had it', async () => {
  const { id, token } = await sandbox.sessionTokens.create()
  const there = await holder(token)
  const terminal = await there.pty.create()
  const running = assert.rejects(there.exec.run('echo; exec sleep 600'))
  const events = there.events.follow()[Symbol.asyncIterator]()
  await events.next()
  await using copy = await sandbox.fork()
  assert.deepEqual(await copy.sessionTokens.list(), [])
  await assert.rejects(new Islet({ url: server.url, token }).sandboxes.connect(copy.id), (error) =>
    hasCode(error, 'forbidden'),
  )
  await sandbox.sessionTokens.revoke(id)
  await assert.rejects(terminal.done, isUnauthorized)
  await running
  // Ends, as it does for a token whose sandbox is gone.
  while (!(await events.next()).done);
  await sandbox.exec.kill(terminal.processId)
})

describe('in Chromium', async () => {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    // Root has no sandbox of Chromium's own; the pages are ours.
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  })
  after(() => browser.close())
  const terminalShows = (page: Page, text: string) =>
    page.locator('.xterm-rows', { hasText: text }).waitFor({ timeout: 60_000 })

  async function enter(context: BrowserContext): Promise<Page> {
    const page = await context.newPage()
    await page.goto((await sandbox.magicLinks.create()).url)
    await page.getByRole('heading', { name: 'shown' }).waitFor()
    return page
  }

  test('a link on a page of another site leads to the terminal, which a reload finds again', async () => {
    await using context = await browser.newContext()
    const { url } = await sandbox.magicLinks.create()
    const site = createServer((_, outgoing) => {
      outgoing.setHeader('Content-Type', 'text/html').end(`<a href="${url}">open</a>`)
    }).listen(0)
    await once(site, 'listening')
    const page = await context.newPage()
    const problems: string[] = []
    page.on('pageerror', (error) => problems.push(String(error)))
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    // Another site than 127.0.0.1.
    await page.goto(`http://localhost:${(site.address() as AddressInfo).port}/`)
    asked.length = 0
    await page.getByText('open').click()
    await terminalShows(page, '$')
    assert.equal(page.url(), `${server.url}/play/`)
    await page.keyboard.type('echo $((6*7)) from the page\n')
    await terminalShows(page, '42 from the page')
    await page.reload()
    await terminalShows(page, '42 from the page')
    await page.keyboard.type('exit 3\n')
    await page.getByText('The shell ended with exit code 3.').waitFor()
    await page.getByRole('button', { name: 'New terminal' }).click()
    await terminalShows(page, '$')
    const origins = new Set(asked.map((address) => new URL(address).origin))
    assert.deepEqual([...origins], [server.url])
    assert.deepEqual(problems, [])
    assert.deepEqual(await page.evaluate('document.cookie'), '')
    site.close()
  })

  test('the page shows files as text, whatever their names, downloads and uploads them', async () => {
    await using context = await browser.newContext()
    const name = '<img src=x onerror="document.title=1">.txt'
    await sandbox.files.write(`shelf/${name}`, '<script>document.title = 2</script>')
    await sandbox.files.write('shelf/bytes', new Uint8Array([0, 1, 2]))
    const page = await enter(context)
    const files = page.getByRole('region', { name: 'Files' })
    await files.getByRole('button', { name: 'shelf/' }).click()
    await files.getByRole('button', { name, exact: true }).click()
    await files.getByText('<script>document.title = 2</script>').waitFor()
    assert.equal(await page.title(), 'shown · Islet')
    const downloading = page.waitForEvent('download')
    await files.getByRole('button', { name: 'Download', exact: true }).click()
    const stream = await (await downloading).createReadStream()
    assert.equal(Buffer.concat(await stream.toArray()).toString(), '<script>document.title = 2</script>')
    await files.getByRole('button', { name: '← Back' }).click()
    await files.getByRole('button', { name: 'bytes', exact: true }).click()
    await files.getByText('It is not text.').waitFor()
    await page.locator('input[type=file]').setInputFiles({
      ...{ name: 'sent.txt', mimeType: 'text/plain', buffer: Buffer.from('from the browser') },
    })
    await files.getByRole('button', { name: 'sent.txt', exact: true }).waitFor()
    assert.equal(await sandbox.files.read('shelf/sent.txt'), 'from the browser')
  })

  test('a page of a preview, at another port of the host, cannot use the cookie of the page', async () => {
    await using context = await browser.newContext()
    const page = await enter(context)
    // A program that shows a page and writes down what it is asked.
    await sandbox.files.write('evil.py', EVIL)
    await sandbox.exec.spawn('exec python3 evil.py')
    await page.getByRole('tab', { name: 'Ports' }).click()
    await page.getByRole('button', { name: 'Make a URL' }).click()
    const preview = await page.getByRole('region', { name: 'Ports' }).getByRole('link').getAttribute('href')
    assert.equal(new URL(preview!).hostname, new URL(server.url).hostname)
    const evil = await context.newPage()
    const visit = await evil.goto(preview!)
    assert.match(
      (await visit!.request().allHeaders()).cookie!,
      /islet_session=st_/,
      'the browser sends it to all ports',
    )
    await evil.reload()
    const answers = await evil.evaluate(`attack(${JSON.stringify([server.url, sandbox.id])})`)
    assert.deepEqual(answers, {
      read: 'failed',
      header: 'failed',
      post: 'opaque',
      remove: 'failed',
      socket: 'closed',
      frame: 'empty',
    })
    assert.equal(await sandbox.files.exists('planted'), false)
    assert.equal(await sandbox.isRunning(), true)
    assert.match(await sandbox.files.read('seen'), /^(None|own=1)\n(own=1\n)+$/)
    const cookies = (await context.cookies()).filter(({ name }) => name === 'islet_session')
    assert.equal(cookies.length, 1, 'the program set none of that name')
    await page.reload()
    await page.getByRole('heading', { name: 'shown' }).waitFor()
  })

  test('signing out revokes the session, and a revoked session is told so', async () => {
    await using context = await browser.newContext()
    const left = await enter(context)
    const before = (await sandbox.sessionTokens.list()).length
    await left.getByRole('button', { name: 'Sign out' }).click()
    await left.getByRole('heading', { name: 'You are signed out.' }).waitFor()
    assert.equal((await sandbox.sessionTokens.list()).length, before - 1)
    assert.deepEqual(await context.cookies(), [])
    await left.reload()
    await left.getByRole('heading', { name: 'This page needs a magic link.' }).waitFor()
    const page = await enter(context)
    await terminalShows(page, '$')
    for (const { id } of await sandbox.sessionTokens.list()) await sandbox.sessionTokens.revoke(id)
    await page.getByRole('heading', { name: 'This session has ended.' }).waitFor()
  })

  test('a link that was used is a page that says so', async () => {
    await using context = await browser.newContext()
    const { url } = await sandbox.magicLinks.create()
    await open(url)
    const page = await context.newPage()
    const answer = await page.goto(url)
    assert.equal(answer!.status(), 410)
    await page.getByRole('heading', { name: 'This magic link was used already.' }).waitFor()
  })
})

const EVIL = `
import http.server
PAGE = b'''<!doctype html><title>preview</title><script>
async function attack([api, id]) {
  const box = api + '/v1/sandboxes/' + id
  const ask = (url, init) => fetch(url, { credentials: 'include', ...init }).then((a) => a.type === 'opaque' ? 'opaque' : String(a.status), () => 'failed')
  const command = JSON.stringify({ command: 'touch planted' })
  return {
    read: await ask(box),
    header: await ask(box, { headers: { 'X-Islet-Page': '1' } }),
    post: await ask(box + '/exec', { method: 'POST', mode: 'no-cors', body: command }),
    remove: await ask(box, { method: 'DELETE' }),
    socket: await new Promise((done) => {
      const socket = new WebSocket(box.replace('http', 'ws') + '/signals', ['islet'])
      socket.onopen = () => done('open')
      socket.onclose = () => done('closed')
    }),
    frame: await new Promise((done) => {
      const frame = document.createElement('iframe')
      frame.onload = () => { try { done(frame.contentDocument?.title ?? 'empty') } catch { done('empty') } }
      frame.src = api + '/play/'
      document.body.append(frame)
    }),
  }
}
</script><body></body>'''
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        open('seen', 'a').write(str(self.headers.get('Cookie')) + chr(10))
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.send_header('Set-Cookie', 'own=1')
        self.send_header('Set-Cookie', 'islet_session=planted; Path=/play/')
        self.end_headers()
        self.wfile.write(PAGE)
http.server.HTTPServer(('127.0.0.1', 8080), Handler).serve_forever()
`
