// Every code example and every row of a table in a document whose interface we have is a block. tests/seeds/blocks/ lists the blocks of each
// document in their order, with a short name of ours and the title of the test that makes the same calls and wants the documented result.
//
//   blocks/opencomputer.ts          export const opencomputer: Seed = { sandbox: [['create: template', 'a title'], …], … }
//   opencomputer.test.ts            testSeed('opencomputer/sandbox', { 'a title': async () => { … }, … })
//
// A title may stand for several blocks. seeds.test.ts checks that each section is tested by a file.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SEEDS } from './blocks.ts'

/** The name of a block, and the title of its test. */
export type Block = readonly [name: string, title: string]
/** The sections of a document, and the blocks of each. The number of a block is its position in the document. */
export type Seed = Record<string, readonly Block[]>
export type Programs = Record<string, () => Promise<void> | void>

/** Registers the tests of one section: `testSeed('opencomputer/sandbox', …)`. `skip` says why they cannot run on this machine. */
export function testSeed(section: string, programs: Programs, options: { skip?: string } = {}): void {
  test(`every block of ${section} has a test here, and every test a block`, () => {
    assert.deepEqual(faultsOf(section, blocksOf(section), Object.keys(programs)), [])
  })
  for (const [title, program] of Object.entries(programs)) test(title, options, program)
}

/** The blocks of a section with their numbers in the document. */
export function blocksOf(section: string): { number: number; name: string; title: string }[] {
  const [seed, part] = section.split('/') as [string, string]
  const sections = SEEDS[seed]
  assert.ok(sections?.[part], `tests/seeds/blocks has no section ${section}`)
  let number = 0
  return Object.entries(sections).flatMap(([name, blocks]) =>
    blocks.map(([block, title]) => ({ number: ++number, name: block, title })).filter(() => name === part),
  )
}

export function faultsOf(
  section: string,
  blocks: readonly { number: number; name: string; title: string }[],
  titles: readonly string[],
): string[] {
  const untested = blocks.filter(({ title }) => !titles.includes(title))
  const unnamed = titles.filter((title) => blocks.every((block) => block.title !== title))
  return [
    ...untested.map(
      ({ number, name, title }) => `block ${number} of ${section} (${name}) has no test "${title}"`,
    ),
    ...unnamed.map((title) => `no block of ${section} has the title "${title}"`),
  ]
}
