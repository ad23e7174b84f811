// Keeps the words true: links lead somewhere, TypeScript snippets run, command lines work as they are written.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { CommanderError } from 'commander'
import { createProgram } from '../packages/cli/src/app.ts'
import { walk } from '../packages/cli/src/command.ts'
import { commandLines } from './support/command-lines.ts'
import { ISLET, root, TestServer } from './support/server.ts'

const run = promisify(execFile)
const pages = globSync(['*.md', 'docs/**/*.md', 'bench/*.md', 'native/**/*.md'], {
  cwd: root,
  exclude: ['node_modules/**'],
})

describe('every page', () => {
  for (const page of pages) {
    test(`${page} links only to what exists`, () => {
      const text = readFileSync(join(root, page), 'utf8')
      const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1]!)
      for (const link of links.filter((target) => !/^(https?:|#)/.test(target))) {
        assert.ok(existsSync(join(root, dirname(page), link.split('#')[0]!)), `${page}: ${link}`)
      }
    })

    test(`${page} names only paths that exist`, () => {
      const text = readFileSync(join(root, page), 'utf8')
      for (const match of text.matchAll(
        /`((?:packages|native|tests|bench|scripts|docs|examples)\/[\w./-]+\.\w+)`/g,
      )) {
        const path = match[1]!
        // Made by a build or a run, not kept.
        if (path.startsWith('native/build/') || path.startsWith('bench/results/')) continue
        assert.ok(existsSync(join(root, path)), `${page}: ${path}`)
      }
    })
  }
})

describe('pages about the code', () => {
  const places = [root, join(root, 'packages/server/src')]
  const names = new Set(
    globSync('{packages,native,tests,bench,scripts,docs,examples}/**/*.*', {
      cwd: root,
      exclude: (path) => path.includes('node_modules'),
    }).map((path) => basename(path)),
  )
  const paths = /^[\w.-]+(\/[\w.-]+)*\/?$/
  const files = /^[\w.-]+\.(ts|c|h|md|def)$/

  for (const page of ['ARCHITECTURE.md', 'AGENTS.md', 'CONTRIBUTING.md']) {
    test(`every file and folder in backticks in ${page} exists`, () => {
      const text = readFileSync(join(root, page), 'utf8')
      const quoted = [...text.matchAll(/`([^`\n]+)`/g)].map((match) => match[1]!)
      const missing = quoted.filter((path) => {
        if (!paths.test(path) || /^(native\/build|dist)\//.test(path)) return false
        if (files.test(path)) return !names.has(path) && !existsSync(join(root, path))
        return path.includes('/') && !places.some((place) => existsSync(join(place, path)))
      })
      assert.deepEqual(missing, [])
    })
  }
})

test('getting-started.md leads to every other page of the guide', () => {
  const text = readFileSync(join(root, 'docs/guide/getting-started.md'), 'utf8')
  const missing = globSync('docs/guide/*.md', { cwd: root })
    .map((page) => basename(page))
    .filter((page) => page !== 'getting-started.md' && !text.includes(`| [${page}](${page}) |`))
  assert.deepEqual(missing, [])
})

test('islet understands every command line in the docs that calls it', async () => {
  for (const name of ['API_KEY', 'ANTHROPIC_API_KEY'])
    process.env[name] ??= 'a variable that a page passes on'
  // Running text may leave out arguments; an unknown option or command is wrong anywhere.
  const incomplete = ['missingArgument', 'optionMissingArgument', 'missingMandatoryOptionValue', 'help']
  const wrong: string[] = []
  const lines = pages.flatMap((page) => commandLines(page, readFileSync(join(root, page), 'utf8')))
  assert.ok(lines.length > 100)
  for (const { page, text, words, inText } of lines) {
    const program = createProgram({ hasSeparator: words.includes('--'), json: true })
    for (const command of walk(program))
      command.action(() => {}).configureOutput({ writeErr: () => {}, writeOut: () => {} })
    await program.parseAsync(words, { from: 'user' }).catch((error: CommanderError) => {
      if (error.exitCode !== 0 && !(inText && incomplete.includes(error.code.replace('commander.', ''))))
        wrong.push(`${page}: ${text}: ${error.message}`)
    })
  }
  assert.deepEqual(wrong, [])
})

describe('snippets', () => {
  let server: TestServer
  before(async () => {
    server = await TestServer.start()
  })
  after(() => server[Symbol.asyncDispose]())

  for (const { page, code } of blocks('ts').filter(({ code }) => /from 'islet(\/\w+)?'/.test(code))) {
    test(`the TypeScript in ${page} that begins with "${firstLine(code)}" runs`, async () => {
      await run(process.execPath, ['--input-type=module-typescript', '--eval', withPackage(code)], {
        cwd: root,
        env: server.clientEnv,
      })
    })
  }

  for (const page of ['docs/guide/getting-started.md', 'docs/guide/cli.md', 'docs/guide/services.md']) {
    test(`the command lines of ${page} work in the order they are written`, async () => {
      const lines = blocks('sh')
        .filter((block) => block.page === page)
        .map(({ code }) => code)
      const islet = `exec </dev/null; islet() { '${process.execPath}' '${ISLET}' "$@"; }; npx() { "$@"; }`
      const cwd = mkdtempSync(join(tmpdir(), 'islet-docs-'))
      try {
        await run('bash', ['-euo', 'pipefail', '-c', [islet, ...lines].join('\n')], {
          cwd,
          env: server.clientEnv,
        })
      } finally {
        rmSync(cwd, { recursive: true })
      }
    })
  }

  for (const example of globSync('examples/*.ts', { cwd: root })) {
    test(`${example} runs`, async () => {
      await run(process.execPath, [example], { cwd: root, env: server.clientEnv })
    })
  }

  test('the example of the README is examples/hello.ts', () => {
    const [first] = blocks('ts').filter(({ page }) => page === 'README.md')
    assert.equal(first!.code, readFileSync(join(root, 'examples/hello.ts'), 'utf8'))
  })

  test('the command lines of the README work in the order they are written', async () => {
    const lines = blocks('sh')
      .filter(({ page }) => page === 'README.md')
      .flatMap(({ code }) => code.split('\n'))
      // `npm ci` and `npm start` are tried by `npm run fresh`; `sh` needs a terminal and has its own test.
      .filter((line) => line.startsWith('npx islet ') && !line.startsWith('npx islet sh '))
    assert.ok(lines.length >= 5)
    for (const line of lines) {
      const args = line
        .replace(/\s+#.*$/, '')
        .split(/\s+/)
        .slice(2)
      await run(process.execPath, [ISLET, ...args], { cwd: root, env: server.clientEnv })
    }
  })
})

test('the first command line of the README prints 42 without a server, also when /tmp is read-only', async () => {
  const text = readFileSync(join(root, 'README.md'), 'utf8')
  assert.match(text, /^npm ci && npx islet run -- python3 -c 'print\(6\*7\)'$/m)
  const env = { ...process.env, ISLET_URL: undefined, ISLET_API_KEY: undefined, TMPDIR: undefined }
  const islet = [process.execPath, ISLET, 'run', '--', 'python3', '-c', 'print(6*7)']
  const lock = ['sh', '-c', 'mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp && exec "$@"', 'sh']
  const { stdout } = await run('unshare', ['--mount', ...lock, ...islet], { cwd: root, env })
  assert.equal(stdout, '42\n')
})

function blocks(language: string): { page: string; code: string }[] {
  return pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8')
    const found = text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))
    return [...found].map((match) => ({ page, code: match[1]! }))
  })
}

/** The bundle that scripts/test makes of the package loads in a quarter of the time of its sources. */
function withPackage(code: string): string {
  const bundled = join(dirname(dirname(ISLET)), 'dist/index.js')
  return existsSync(bundled) ? code.replaceAll("from 'islet'", `from '${bundled}'`) : code
}

function firstLine(code: string): string {
  return code.split('\n').find((line) => line.trim() !== '' && !line.startsWith('import')) ?? ''
}
