import { createRequire } from 'node:module'
import type { Source } from './rules.ts'

const MAX_LINES = 60
const ROOMS = /^(bin|control|core|markup|media|signaling)\//

/** Functions that may be longer, by path and name, with the reason. */
const LONGER: Readonly<Record<string, string>> = {
  'signaling/node.ts startSignaling': 'wires the services of the node, in order',
  'signaling/edge/index.ts createEdge': 'wires the layers of the edge, in order',
  'media/worker.ts createMediaWorker': 'wires the parts of the worker, in order',
  'control/console/lib/pbx.ts asterisk': 'the text of a configuration',
}

interface Node {
  readonly end: number
  readonly parent?: Node
  readonly name?: { getText(): string }
  readonly body?: object
  getStart(): number
}
interface Tree extends Node {
  getLineAndCharacterOfPosition(position: number): { readonly line: number }
}
interface Parser {
  readonly ScriptTarget: { readonly Latest: number }
  createSourceFile(path: string, text: string, target: number, parents: boolean): Tree
  isFunctionLike(node: Node): boolean
  forEachChild(node: Node, visit: (child: Node) => void): void
}

// This repository's compiler has no JavaScript API. The one that oazapfts depends on has.
const parser = createRequire(createRequire(import.meta.url).resolve('oazapfts'))('typescript') as Parser

/** A function and the number of its own lines. The lines of nested functions count for those. */
interface Measured {
  readonly name: string
  readonly lines: number
}

export function functionsOf(path: string, text: string): Measured[] {
  const tree = parser.createSourceFile(path, text, parser.ScriptTarget.Latest, true)
  const lineOf = (position: number): number => tree.getLineAndCharacterOfPosition(position).line
  const found: Measured[] = []
  /** Records the functions in `node`. Returns how many lines they take from the enclosing function. */
  const taken = (node: Node): number => {
    let inside = 0
    parser.forEachChild(node, child => {
      inside += taken(child)
    })
    if (!parser.isFunctionLike(node) || node.body === undefined) return inside
    const more = lineOf(node.end) - lineOf(node.getStart())
    found.push({
      name: node.name?.getText() ?? node.parent?.name?.getText() ?? '(anonymous)',
      lines: more + 1 - inside,
    })
    return more
  }
  taken(tree)
  return found
}

export function lengthFindings(sources: readonly Source[], longer = LONGER): string[] {
  const long = sources
    .filter(({ path }) => ROOMS.test(path))
    .flatMap(({ path, text }) =>
      functionsOf(path, text)
        .filter(({ lines }) => lines > MAX_LINES)
        .map(({ name, lines }) => ({ place: `${path} ${name}`, lines })),
    )
  const places = new Set(long.map(({ place }) => place))
  return [
    ...long
      .filter(({ place }) => longer[place] === undefined)
      .map(({ place, lines }) => `${place}: ${lines} lines of its own, more than ${MAX_LINES}`),
    ...Object.keys(longer)
      .filter(place => !places.has(place))
      .map(place => `test/tidy/lengths.ts: ${place} is short now: take it from the list`),
  ]
}
