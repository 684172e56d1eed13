// Finds exports that no file imports. A name that only its own file uses is private; an unused name is deleted.
import type { Source } from './rules.ts'

/** A generated file, which exports the types that the console imports and those that they refer to. */
const GENERATED = 'control/console/lib/api-types.ts'

const DECLARED = /^export (?:declare )?(?:abstract |async )?(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm
const LISTED = /^export (?:type )?\{([^}]*)\}/gm
const DEFAULT = /^export default\b/m
const FROM = /^(import|export) ((?:type )?(?:\w+,? )?(?:\{[^}]*\} |\*(?: as \w+)? )?)from ['"](\.[^'"]+)['"]/gm
const DYNAMIC = /(?:const \{([^}]*)\} = await )?\bimport\(\s*['"](\.[^'"]+)['"]\s*\)(?:\)?\.(\w+))?/g
/** Stands for every name of a module. */
const ALL = '*'

type Resolve = (path: string, name: string) => string

interface Import {
  readonly from: string
  readonly names: readonly string[]
  /** True for `export * from`: a name that is imported from this file counts as imported from `from`. */
  readonly forwards: boolean
}

export function exportFindings(all: readonly Source[], resolve: Resolve): string[] {
  const used = usedNames(new Map(all.map(source => [source.path, importsOf(source, resolve)])))
  return all
    .filter(({ path }) => path !== GENERATED)
    .flatMap(({ path, text }) => {
      const known = used.get(path) ?? new Set()
      return exportedNames(text)
        .filter(name => !known.has(name) && !known.has(ALL))
        .map(name => `${path}: nobody imports ${name}: export only what another file uses`)
    })
}

/** Returns, for each file, the names that other files import from it. */
function usedNames(imports: ReadonlyMap<string, readonly Import[]>): ReadonlyMap<string, ReadonlySet<string>> {
  const used = new Map<string, Set<string>>()
  const use = (path: string, name: string): void => {
    const names = used.get(path) ?? new Set()
    used.set(path, names)
    if (names.has(name)) return
    names.add(name)
    for (const { from, forwards } of imports.get(path) ?? []) if (forwards) use(from, name)
  }
  for (const { from, names } of [...imports.values()].flat()) for (const name of names) use(from, name)
  return used
}

function exportedNames(text: string): string[] {
  const declared = [...text.matchAll(DECLARED)].map(match => match[1] ?? '')
  const listed = [...text.matchAll(LISTED)].flatMap(match => namesIn(match[1] ?? '').map(({ exported }) => exported))
  return [...declared, ...listed, ...(DEFAULT.test(text) ? ['default'] : [])]
}

function importsOf({ path, text }: Source, resolve: Resolve): Import[] {
  const fixed = [...text.matchAll(FROM)].map(([, keyword, clause = '', from = '']) => ({
    from: resolve(path, from),
    names: clauseNames(clause, text),
    forwards: keyword === 'export' && /^(type )?\*\s*$/.test(clause),
  }))
  const dynamic = [...text.matchAll(DYNAMIC)].map(([, list, from = '', name]) => ({
    from: resolve(path, from),
    names: list === undefined ? [name ?? ALL] : namesIn(list).map(item => item.name),
    forwards: false,
  }))
  return [...fixed, ...dynamic]
}

/** Returns the names that `import <clause> from` or `export <clause> from` takes. */
function clauseNames(clause: string, text: string): string[] {
  const space = /\* as (\w+)/.exec(clause)?.[1]
  if (space !== undefined) return namesInSpace(space, text)
  const braces = /\{([^}]*)\}/.exec(clause)?.[1] ?? ''
  const whole = clause.replace(/\{[^}]*\}/, '').replace(/^\s*type\s/, '')
  return [...namesIn(braces).map(({ name }) => name), ...(/\w/.test(whole) ? ['default'] : [])]
}

/** Returns the names that a file uses of `import * as space`; `ALL` for a use of `space` itself. */
function namesInSpace(space: string, text: string): string[] {
  const uses = [...text.matchAll(new RegExp(`(?<!\\* as |[\\w.'/-])${space}\\b(?!['/-])(?:\\.(\\w+))?`, 'g'))]
  return uses.map(match => match[1] ?? ALL)
}

const namesIn = (list: string): { name: string; exported: string }[] =>
  list
    .split(',')
    .map(item => item.trim().replace(/^type\s+/, ''))
    .filter(item => item !== '')
    .map(item => {
      const [name = '', exported = name] = item.split(/\s+as\s+/)
      return { name, exported }
    })
