import { existsSync, readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const FRAME = /(file:\/\/[^\s()]+|\/[^\s():]+):(\d+):(\d+)/

/** Maps a place in a compiled file to its source. Reads maps only for failures: loading all of them costs seconds. */
function sourceOf(line: string): string {
  return line.replace(FRAME, (whole, where: string, row: string, column: string) => {
    const path = where.startsWith('file:') ? fileURLToPath(where) : where
    const map = `${path}.map`
    if (!existsSync(map)) return whole
    const found = new SourceMap(JSON.parse(readFileSync(map, 'utf8'))).findEntry(Number(row) - 1, Number(column) - 1)
    if (!('originalSource' in found)) return whole
    const compiled = relative(process.cwd(), path)
    const source = compiled.replace(/^build\//, '').replace(/\.js$/, '.ts')
    return `${source}:${found.originalLine + 1}:${found.originalColumn + 1}`
  })
}

/** Frames of the harness and of Node.js show nothing about a failure. */
const OURS = /support\/harness\/|node:internal|node_modules\/tcompare/

/** The frames of a stack outside the harness, with the places in TypeScript. */
export const framesOf = (stack: string | undefined): string =>
  (stack ?? '')
    .split('\n')
    .filter(line => /^\s+at /.test(line) && !OURS.test(line))
    .map(line => sourceOf(line.trim()))
    .join('\n')

/** Message, properties and stack of what was thrown, in TypeScript lines, with its causes. */
export function thrown(error: unknown): string {
  if (!(error instanceof Error)) return `thrown: ${String(error)}`
  const cause = error.cause === undefined ? '' : `\ncaused by ${thrown(error.cause)}`
  return `${error.name}: ${error.message}\n${framesOf(error.stack)}${cause}`
}
