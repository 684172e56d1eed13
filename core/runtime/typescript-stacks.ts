import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, resolve } from 'node:path'
import { TREE } from './tree.ts'

/**
 * `file:///tree/build/x.js:12:34`, the same without the scheme, or a chunk of the bundle by its path in the tree
 * (scripts/bundle/load.cjs), within a line of a stack trace.
 */
const PLACE = /(?:file:\/\/)?((?:\/|build\/bundle\/)[^():]+\.js):(\d+):(\d+)/

/** Maps by the path of their JavaScript file; null when it has none. They are large, so they may be collected. */
const maps = new Map<string, WeakRef<SourceMap> | null>()

/**
 * Makes stack traces of this thread name the lines of the TypeScript sources. Node's --enable-source-maps reads the map
 * of every module when it loads it, which takes longer than most commands run. This reads a map when a trace needs it.
 */
export function traceTypeScript(): void {
  Error.prepareStackTrace = (error, sites) =>
    [headOf(error), ...sites.map(site => `    at ${String(site).replace(PLACE, inSource)}`)].join('\n')
}

function headOf(error: Error): string {
  try {
    return String(error)
  } catch {
    // An error whose name or message cannot become a text.
    return 'Error'
  }
}

function inSource(place: string, file: string, line: string, column: string): string {
  const path = resolve(TREE, file)
  const entry = mapOf(path)?.findEntry(Number(line) - 1, Number(column) - 1)
  if (!entry || !('originalSource' in entry)) return place
  const source = resolve(dirname(path), entry.originalSource)
  return `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
}

function mapOf(file: string): SourceMap | null {
  const known = maps.get(file)
  if (known === null) return null
  const kept = known?.deref()
  if (kept) return kept
  const read = readMap(file)
  maps.set(file, read && new WeakRef(read))
  return read
}

function readMap(file: string): SourceMap | null {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')))
  } catch {
    // A package without maps, or a file that this process may no longer read.
    return null
  }
}
