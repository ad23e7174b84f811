// The command lines of a page that call islet, as words. Understands as much of a shell as docs use: quotes, pipes, lists,
// redirections, comments, assignments and $(…).

export interface CommandLine {
  page: string
  /** As it is written. */
  text: string
  /** The words after `islet`. */
  words: string[]
  /** In running text, not in a block. */
  inText: boolean
}

const BLOCK = /^```(?:sh|console|bash)\n([\s\S]*?)^```/gm
const INLINE = /`((?:sudo |npx )?islet [^`\n]+)`/g

export function commandLines(page: string, markdown: string): CommandLine[] {
  const blocks = [...markdown.matchAll(BLOCK)].flatMap((match) => typedLines(match[1]!))
  const inline = [...markdown.replaceAll(BLOCK, '').matchAll(INLINE)].map((match) => match[1]!)
  const callsOf = (text: string, inText: boolean) =>
    callsIn(text).map(([, ...words]) => ({ page, text, words, inText }))
  return [...blocks.flatMap((text) => callsOf(text, false)), ...inline.flatMap((text) => callsOf(text, true))]
}

/** In a block with prompts the other lines are output. */
function typedLines(block: string): string[] {
  const lines = block.replaceAll('\\\n', ' ').split('\n')
  const prompted = lines.flatMap((line) => /^[$#] (.*)$/.exec(line)?.[1] ?? [])
  return lines.some((line) => line.startsWith('$ '))
    ? prompted
    : lines.filter((line) => !line.startsWith('#'))
}

/** The simple commands of a line whose program is islet, those within $(…) too. */
function callsIn(line: string): string[][] {
  const calls: string[][] = []
  let words: string[] = []
  let word: string | undefined
  const endWord = (): void => {
    if (word !== undefined) words.push(word)
    word = undefined
  }
  const endCommand = (): void => {
    endWord()
    const start = words.findIndex((each) => !/^(sudo|npx|\w+=.*)$/.test(each))
    if (words[start] === 'islet') calls.push(words.slice(start))
    words = []
  }
  for (let at = 0; at < line.length; at++) {
    const sign = line[at]!
    if (sign === "'" || sign === '"') {
      const end = line.indexOf(sign, at + 1)
      word = (word ?? '') + line.slice(at + 1, end)
      if (sign === '"')
        for (const inner of line.slice(at + 1, end).matchAll(/\$\(([^)]*)\)/g))
          calls.push(...callsIn(inner[1]!))
      at = end
    } else if (sign === '$' && line[at + 1] === '(') {
      const end = closing(line, at + 1)
      calls.push(...callsIn(line.slice(at + 2, end)))
      word = `${word ?? ''}$value`
      at = end
    } else if (sign === '\\') word = (word ?? '') + (line[++at] ?? '')
    else if (sign === '#' && word === undefined) break
    else if (/[|;&]/.test(sign)) endCommand()
    else if (/[<>]/.test(sign)) {
      endCommand()
      // Its file is no word; what follows belongs to the same command, and docs put nothing there.
      while (at + 1 < line.length && !/[|;&]/.test(line[at + 1]!)) at++
    } else if (/\s/.test(sign)) endWord()
    else word = (word ?? '') + sign
  }
  endCommand()
  return calls
}

function closing(line: string, open: number): number {
  let depth = 0
  for (let at = open; at < line.length; at++) {
    if (line[at] === '(') depth++
    if (line[at] === ')' && --depth === 0) return at
  }
  return line.length
}
