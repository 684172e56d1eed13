interface Matched<T> {
  readonly value: T
  readonly params: Readonly<Record<string, string>>
}

/** Finds routes by path template (`/trunks/{trunk_id}`) and method. Literal segments win over parameters. */
export interface Matcher<T> {
  add(method: string, template: string, value: T): void
  /** Returns null for an unknown path, and the allowed methods when the path exists without `method`. */
  find(method: string, path: string): Matched<T> | { readonly allow: readonly string[] } | null
}

interface Node<T> {
  readonly literals: Map<string, Node<T>>
  parameter: { readonly name: string; readonly node: Node<T> } | null
  /** Parameters with a suffix, such as `{id}.wav`, keyed by suffix. They take precedence over the plain parameter. */
  readonly endings: Map<string, { readonly name: string; readonly node: Node<T> }>
  readonly methods: Map<string, T>
}

const emptyNode = <T>(): Node<T> => ({
  literals: new Map(),
  parameter: null,
  endings: new Map(),
  methods: new Map(),
})

export function createMatcher<T>(): Matcher<T> {
  const root = emptyNode<T>()
  return {
    add(method, template, value) {
      let node = root
      for (const segment of segmentsOf(template)) node = childFor(node, segment, template)
      const verb = method.toUpperCase()
      if (node.methods.has(verb)) throw new Error(`${verb} ${template} is there twice`)
      node.methods.set(verb, value)
    },
    find(method, path) {
      const params: Record<string, string> = {}
      const node = walk(root, segmentsOf(path), 0, params)
      if (!node) return null
      const value = node.methods.get(method)
      return value === undefined ? { allow: [...node.methods.keys()].sort() } : { value, params }
    },
  }
}

const segmentsOf = (path: string): string[] => path.split('/').slice(1)

function childFor<T>(node: Node<T>, segment: string, template: string): Node<T> {
  const [, ended, ending] = /^\{(\w+)\}(\.\w+)$/.exec(segment) ?? []
  if (ended !== undefined && ending !== undefined) {
    const known = node.endings.get(ending) ?? { name: ended, node: emptyNode<T>() }
    node.endings.set(ending, known)
    return known.node
  }
  const name = /^\{(\w+)\}$/.exec(segment)?.[1]
  if (name === undefined) {
    const child = node.literals.get(segment) ?? emptyNode<T>()
    node.literals.set(segment, child)
    return child
  }
  node.parameter ??= { name, node: emptyNode<T>() }
  if (node.parameter.name !== name) throw new Error(`${template}: the parameter is {${node.parameter.name}} elsewhere`)
  return node.parameter.node
}

function walk<T>(node: Node<T>, path: readonly string[], at: number, params: Record<string, string>): Node<T> | null {
  const segment = path[at]
  if (segment === undefined) return node.methods.size > 0 ? node : null
  const literal = node.literals.get(segment)
  const found = literal && walk(literal, path, at + 1, params)
  if (found) return found
  for (const [ending, { name, node: child }] of node.endings) {
    if (!segment.endsWith(ending) || segment.length === ending.length) continue
    const beyond = walk(child, path, at + 1, params)
    if (!beyond) continue
    params[name] = decoded(segment.slice(0, -ending.length))
    return beyond
  }
  const { parameter } = node
  if (!parameter || segment === '') return null
  const beyond = walk(parameter.node, path, at + 1, params)
  if (beyond) params[parameter.name] = decoded(segment)
  return beyond
}

/** Decodes a path segment. A malformed one is returned unchanged: no resource has such an id. */
function decoded(segment: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
