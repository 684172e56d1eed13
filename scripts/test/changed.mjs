// Which test files a change can reach, by the import graph and by the paths that sources mention.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const ROOTS = ['core', 'signaling', 'media', 'control', 'markup', 'native', 'bin', 'bench', 'test', 'scripts']
const SOURCE = /(\.(ts|mjs)$|^bin\/strowger$)/
/** A change of these can change everything. */
const EVERYTHING = /^(package(-lock)?\.json|tsconfig\.json|scripts\/setup\.mjs|test\/support\/harness\/.*)$/

const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).split('\n').filter(Boolean)

/** Files that differ from where this branch left `main`, with those that git does not know yet. */
export function changedFiles() {
  let base = 'HEAD'
  try {
    ;[base] = git('merge-base', 'HEAD', 'main')
  } catch {
    // A clone of one branch has no main.
  }
  return [...new Set([...git('diff', '--name-only', base), ...git('ls-files', '--others', '--exclude-standard')])]
}

const sourcesBelow = folder =>
  readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return ['node_modules', 'build', 'console'].includes(entry.name) ? [] : sourcesBelow(path)
    return SOURCE.test(path) ? [path] : []
  })

const readTree = () => new Map(ROOTS.flatMap(sourcesBelow).map(path => [path, readFileSync(path, 'utf8')]))

/** The sources that a source imports, starts as a process or a thread, or names by a compiled path. */
function usesOf(path, text, sources) {
  const relative = [...text.matchAll(/['"`](\.{1,2}\/[^'"`\n]+)['"`]/g)].map(([, name]) => join(dirname(path), name))
  const named = [...text.matchAll(/['"`/]((?:[\w-]+\/)+[\w.-]+)['"`]/g)].map(([, name]) => name.replace(/^build\//, ''))
  return [...relative, ...named].map(name => normalize(name).replace(/\.js$/, '.ts')).filter(name => sources.has(name))
}

const escaped = text => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** A source reads a file that is no source when it names the file, or ends a path with a folder around it. */
function mentions(text, path) {
  for (let folder = dirname(path); folder !== '.'; folder = dirname(folder))
    if (text.includes(folder) && new RegExp(`${escaped(folder)}/?(['"\`]|\\$\\{)`).test(text)) return true
  return text.includes(path)
}

/** Returns the test files among `sources` (text by path) that a change of these files can reach. */
export function reachedTests(changed, sources = readTree()) {
  const tests = [...sources.keys()].filter(path => path.endsWith('.test.ts'))
  if (changed.some(path => EVERYTHING.test(path))) return new Set(tests)
  const users = new Map()
  for (const [path, text] of sources)
    for (const used of usesOf(path, text, sources)) users.set(used, [...(users.get(used) ?? []), path])
  const reached = new Set()
  const waiting = changed.flatMap(path => {
    if (sources.has(path)) return [path]
    const readers = [...sources].filter(([, text]) => mentions(text, path)).map(([reader]) => reader)
    // The addon's sources are behind its door.
    return path.startsWith('native/') && existsSync('native/index.ts') ? [...readers, 'native/index.ts'] : readers
  })
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (reached.has(path)) continue
    reached.add(path)
    waiting.push(...(users.get(path) ?? []))
  }
  return new Set(tests.filter(path => reached.has(path)))
}
