import type { Islet } from '@islet/sdk'
import type { Command } from 'commander'
import { allSnapshots, findSnapshot } from '../../args/find.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { clean, formatAge } from '../../format.ts'
import { paint, print, printJson, say } from '../../output.ts'

interface Node {
  id: string
  name: string | null
  tag: string | null
  createdAt: string
  deleted: boolean
  children: Node[]
}

export function tree(): Command {
  return command(
    'tree',
    'Show the tree of all snapshots, or the ancestors and descendants of one.',
    'islet snapshot tree with-deps',
  )
    .argument('[snapshot]', 'id, id prefix, tag, or name')
    .action(async (text: string | undefined, flags: JsonFlag) => {
      const islet = connect()
      const wanted = text === undefined ? undefined : (await findSnapshot(islet, text)).id
      const tops = await (wanted === undefined ? wholeTree(islet) : lineOf(islet, wanted))
      if (flags.json) return printJson(tops)
      if (tops.length === 0) return say('There are no snapshots. islet snapshot create SANDBOX creates one.')
      for (const top of tops) draw(top, { first: '', rest: '' }, wanted)
    })
}

/** The snapshot with its ancestors and all its descendants. */
async function lineOf(islet: Islet, id: string): Promise<Node[]> {
  const { lineage, children } = await islet.snapshots.lineage(id)
  const nodes = new Map<string, Node>()
  for (const { parentId, ...entry } of children) nodes.set(entry.id, { ...entry, children: [] })
  const [self, ...above] = lineage
  const own: Node = { ...self!, children: [] }
  nodes.set(own.id, own)
  for (const { id: child, parentId } of children) nodes.get(parentId)?.children.push(nodes.get(child)!)
  return [above.reduce((below: Node, entry) => ({ ...entry, children: [below] }), own)]
}

async function wholeTree(islet: Islet): Promise<Node[]> {
  const nodes = new Map<string, Node & { parentId: string | null }>()
  for await (const { id, name, tag, createdAt, parentId } of allSnapshots(islet))
    nodes.set(id, { id, name, tag, createdAt, parentId, deleted: false, children: [] })
  for (const { id, parentId } of [...nodes.values()]) {
    if (parentId === null || nodes.has(parentId)) continue
    // Deleted snapshots are not listed; they appear only in the lineage of their descendants.
    const { lineage } = await islet.snapshots.lineage(id)
    lineage.forEach((entry, i) => {
      if (!nodes.has(entry.id))
        nodes.set(entry.id, { ...entry, parentId: lineage[i + 1]?.id ?? null, children: [] })
    })
  }
  const tops: Node[] = []
  const byAge = [...nodes.values()].sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1))
  for (const { parentId, ...node } of byAge) {
    const parent = parentId === null ? undefined : nodes.get(parentId)
    if (parent) parent.children.push(node)
    else tops.push(node)
  }
  return tops
}

function draw(node: Node, indent: { first: string; rest: string }, wanted: string | undefined): void {
  const { id, tag, name, deleted, createdAt, children } = node
  const words = [
    id === wanted ? paint('bold', id) : id,
    ...(tag === null ? [] : [paint('green', clean(tag))]),
    ...(name === null ? [] : [clean(name)]),
    deleted ? paint('dim', '(deleted)') : paint('dim', formatAge(createdAt)),
  ]
  print(indent.first + words.join('  '))
  for (const child of children) {
    const isLast = child === children.at(-1)
    const first = `${indent.rest}${isLast ? '└─ ' : '├─ '}`
    draw(child, { first, rest: `${indent.rest}${isLast ? '   ' : '│  '}` }, wanted)
  }
}
