// Finds circular imports. The files of a circle can be neither read nor moved one at a time.
import type { Source } from './rules.ts'

/** The compiler erases type imports, and `import()` runs later, so a small circle of them is harmless. */
const MOST_BY_TYPE = 6
/** An import while the program runs. Its file is read and moved with the circle, so it counts in the circle's size. */
const DYNAMIC = /\bimport\(\s*['"](\.[^'"]+)['"]\s*\)/g
const STATIC = /(?:^|\n)\s*(import|export)\s([^'"\n;]*(?:\n[^'"\n;]*)*?)from\s+['"](\.[^'"]+)['"]/g

type Graph = ReadonlyMap<string, string[]>

export function circleFindings(all: readonly Source[], resolve: (path: string, name: string) => string): string[] {
  const byValue = graph(all, resolve, isValue)
  const byType = graph(all, resolve, () => true)
  for (const { path, text } of all)
    for (const [, name = ''] of text.matchAll(DYNAMIC)) byType.get(path)?.push(resolve(path, name))
  return [
    ...circles(byValue).map(circle => `circle of imports by value: ${circle.join(', ')}`),
    ...circles(byType)
      .filter(circle => circle.length > MOST_BY_TYPE)
      .map(
        circle =>
          `circle of imports of more than ${MOST_BY_TYPE} files, types and import() counted: ${circle.join(', ')}`,
      ),
  ]
}

function graph(
  all: readonly Source[],
  resolve: (path: string, name: string) => string,
  counts: (clause: string) => boolean,
): Graph {
  return new Map(
    all.map(({ path, text }) => [
      path,
      [...text.matchAll(STATIC)]
        .filter(([, , clause]) => counts(clause ?? ''))
        .map(match => resolve(path, match[3] ?? '')),
    ]),
  )
}

/** Reports whether `import <clause> from` imports a value, not only types. */
function isValue(clause: string): boolean {
  if (/^\s*type\b(?!\s+from)/.test(clause)) return false
  const named = /^\s*\{([^}]*)\}\s*$/.exec(clause)?.[1]
  if (named === undefined) return true
  return named.split(',').some(name => name.trim() !== '' && !/^type\s/.test(name.trim()))
}

/** Returns the strongly connected components of more than one file (Tarjan's algorithm). */
function circles(imports: Graph): string[][] {
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const open: string[] = []
  const found: string[][] = []
  const visit = (path: string): number => {
    const own = index.size
    index.set(path, own)
    low.set(path, own)
    open.push(path)
    for (const next of imports.get(path) ?? []) {
      if (!imports.has(next)) continue
      if (!index.has(next)) low.set(path, Math.min(low.get(path) ?? own, visit(next)))
      else if (open.includes(next)) low.set(path, Math.min(low.get(path) ?? own, index.get(next) ?? own))
    }
    const lowest = low.get(path) ?? own
    if (lowest === own) {
      const circle = open.splice(open.indexOf(path))
      if (circle.length > 1) found.push(circle.sort())
    }
    return lowest
  }
  for (const path of imports.keys()) if (!index.has(path)) visit(path)
  return found
}
