import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hasCode } from '../../../../sdk/src/errors.ts'
import { removeEnv, updateEnv } from './edit.ts'
import { parseEnv, parseSegments, textOf } from './parse.ts'

describe('parseEnv', () => {
  const cases: [title: string, text: string, variables: Record<string, string>][] = [
    [
      'plain values, empty ones and spaces around =',
      'A=1\nB=\nC = x y \n  D=z',
      { A: '1', B: '', C: 'x y', D: 'z' },
    ],
    ['export, comments and blank lines', '# c\n\nexport A=1\n  # d\nexport\tB=2\n', { A: '1', B: '2' }],
    [
      'comments after a value',
      'A=a#b #c\nB= # c\nC=#v\nD="x" # c\nE=\'y\'#c',
      { A: 'a#b', B: '', C: '#v', D: 'x', E: 'y' },
    ],
    ['single quotes as they are', 'A=\'a\\n$b "c" #d\'', { A: 'a\\n$b "c" #d' }],
    ['double quotes with escapes', 'A="a\\n\\t\\r\\"\\\\\\$\\`\\q"', { A: 'a\n\t\r"\\$`\\q' }],
    ['backslashes one by one', 'A="\\\\n"\nB="\\\\\\n"', { A: '\\n', B: '\\\n' }],
    ['backticks', 'A=`it\'s "x"`', { A: 'it\'s "x"' }],
    [
      'values of several lines',
      'A="x\ny"\nB=\'p\n\nq\'\nC=`m\nn`\nD=1',
      { A: 'x\ny', B: 'p\n\nq', C: 'm\nn', D: '1' },
    ],
    ['CRLF and a byte order mark', '\uFEFFA=1\r\nB="x\r\ny"\r\nC=3\r', { A: '1', B: 'x\ny', C: '3' }],
    ['the last of duplicates', 'A=1\nA=2', { A: '2' }],
    ['values that only begin with a quote', `A='a'b\nB="x" y`, { A: "'a'b", B: '"x" y' }],
    ['not lines without =', 'nothing\nA=1\n=x\na b=c\n', { A: '1' }],
    ['not quotes that never end, but what follows them', 'A="open\nB="b"\nC=\'x\nD=1', { B: 'b', D: '1' }],
    [
      'names with dots and dashes, and letters of all kinds',
      'a.b-c=ä à\n__proto__=p',
      { 'a.b-c': 'ä à', ['__proto__']: 'p' },
    ],
    ['nothing', '', {}],
  ]
  for (const [title, text, variables] of cases) {
    it(`reads ${title}`, () => assert.deepEqual({ ...parseEnv(text) }, variables))
  }

  it('reads a long hostile file quickly', () => {
    for (const line of ['A="', "A='", 'A=`', '"', 'export ', ' ', 'A', '\\', 'A="\\"']) {
      for (const end of ['', '\n']) parseEnv((line + end).repeat(Math.floor(1_000_000 / (line.length + 1))))
    }
  })
})

describe('updateEnv', () => {
  it('changes the given keys and keeps every other byte', () => {
    const file =
      '\xEF\xBB\xBF# \xe9 latin1\r\nA=1 # one\r\nexport B = \'x\'#c\nA=3\n\nC="m\nn" # k\nbroken\nD=`d`'
    const changed = updateEnv(file, { A: 'new value', B: 'plain', C: '', N: '' })
    assert.equal(
      changed,
      "\xEF\xBB\xBF# \xe9 latin1\r\nA=1 # one\r\nexport B = plain #c\nA='new value'\n\nC= # k\nbroken\nD=`d`\r\nN=\r\n",
    )
    assert.equal(updateEnv(file, { D: 'd', A: '3' }), file, 'the same values are the same bytes')
  })

  it('quotes only values that need it, so that a shell reads the same value', () => {
    const quoted = (value: string) => updateEnv('', { K: value }).slice(2, -1)
    assert.equal(quoted('http://a.b:1/c?'), "'http://a.b:1/c?'")
    assert.equal(quoted('postgres://me@db:5432/x'), 'postgres://me@db:5432/x')
    assert.equal(quoted('two words'), "'two words'")
    assert.equal(quoted('$HOME `id` \\ "x"'), '\'$HOME `id` \\ "x"\'')
    assert.equal(quoted("it's"), '"it\'s"')
    assert.equal(quoted("it's $5"), '"it\'s \\$5"')
    assert.equal(quoted('a\nb'), "'a\nb'")
    assert.equal(quoted('a\r\nb'), '"a\\r\nb"')
    assert.equal(quoted(''), '')
  })

  it('writes any value into any file so that it reads back the same', () => {
    const parts = [...' "\'`\\\n\r\t$#=ab0!~*{}', 'K=', 'export ', '\\n', 'é', '\n#', "='", '="']
    const random = (length: number) =>
      Array.from({ length }, () => parts[Math.floor(Math.random() * parts.length)]).join('')
    let refused = 0
    for (let round = 0; round < 20_000; round++) {
      const file = random(round % 24)
      const variables = { K: random(round % 11), N: random(round % 7) }
      const seen = `${JSON.stringify(file)} ${JSON.stringify(variables)}`
      assert.equal(parseSegments(file).map(textOf).join(''), file, seen)
      try {
        const changed = updateEnv(file, variables)
        assert.deepEqual({ ...parseEnv(changed) }, { ...parseEnv(file), ...variables }, seen)
        assert.equal(updateEnv(changed, variables), changed, seen)
        const { text } = removeEnv(changed, ['K', 'N'])
        assert.ok(!('K' in parseEnv(text)) && !('N' in parseEnv(text)), seen)
      } catch (error) {
        assert.ok(hasCode(error, 'conflict'), String(error))
        refused++
      }
    }
    assert.ok(refused < 200, `only an unclosed quote is in the way, sometimes: ${refused}`)
  })

  it('refuses a change that an unclosed quote would swallow', () => {
    assert.throws(
      () => updateEnv("A='open\nB=1", { B: "' #" }),
      (error) => {
        return hasCode(error, 'conflict') && /line 1\.$/.test(error.message)
      },
    )
  })
})

describe('removeEnv', () => {
  it('removes every line of a key, also values of several lines, and returns the keys it found', () => {
    const file = "# a\nA=1\nB='x\ny' # c\nexport A=2\nopen='\nC=3\n"
    assert.deepEqual(removeEnv(file, ['A', 'B', 'missing', 'A']), {
      text: "# a\nopen='\nC=3\n",
      removed: ['A', 'B'],
    })
    assert.deepEqual(removeEnv(file, ['open', 'toString']), { text: file, removed: [] })
  })
})
