import { createRequire } from 'node:module'
import type { Source } from './rules.ts'

/** Lines of a function without those of the functions in it, and with them. */
const MAX_OWN = 60
const MAX_WHOLE = 95
const ROOMS = /^(bin|control|core|markup|media|signaling)\//

/** Functions that may be longer, by path and name, with the reason. */
const LONGER: Readonly<Record<string, string>> = {
  'signaling/node.ts startSignaling': 'wires the services of the node, in order',
  'signaling/edge/index.ts createEdge': 'wires the layers of the edge, in order',
  'media/worker.ts createMediaWorker': 'wires the parts of the worker, in order',
  'control/console/lib/pbx.ts asterisk': 'the text of a configuration',
  'core/state/sqlite/reader.ts createReader': 'one cache, its statements and its invalidation share their state',
  'signaling/drachtio/inbound.ts inboundInvite':
    'an INVITE and the answers that it may get, each of which ends the others',
  'signaling/serve-edge.ts serveEdge': 'answers each question of the edge',
  'bin/agent/try.ts tryAgent': 'a conversation in the terminal, from its connection to its end',
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

interface Measured {
  readonly name: string
  /** Its own lines; the lines of nested functions count for those. */
  readonly own: number
  /** All of its lines. */
  readonly whole: number
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
      own: more + 1 - inside,
      whole: more + 1,
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
        .filter(({ own, whole }) => own > MAX_OWN || whole > MAX_WHOLE)
        .map(({ name, own, whole }) => ({ place: `${path} ${name}`, own, whole })),
    )
  const places = new Set(long.map(({ place }) => place))
  return [
    ...long
      .filter(({ place }) => longer[place] === undefined)
      .map(({ place, own, whole }) =>
        own > MAX_OWN
          ? `${place}: ${own} lines of its own, more than ${MAX_OWN}`
          : `${place}: ${whole} lines with the functions in it, more than ${MAX_WHOLE}`,
      ),
    ...Object.keys(longer)
      .filter(place => !places.has(place))
      .map(place => `test/tidy/lengths.ts: ${place} is short now: take it from the list`),
  ]
}
