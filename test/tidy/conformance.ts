import { existsSync, readFileSync } from 'node:fs'
import { hasTest } from './threats.ts'

const DOCUMENT = 'docs/conformance.md'
const STATES = new Set(['done', 'partly', 'not'])

/** Checks a row of docs/conformance.md. A row that claims something names existing tests. */
export function conformanceRowFindings(row: string): string[] {
  const [section = '', , state = '', shown = '', ...more] = row.slice(2, -2).split(' | ')
  const at = `${DOCUMENT}: ${section}`
  if (more.length > 0 || !STATES.has(state) || shown === '') return [`${at}: not a row of four cells with a state`]
  const missing: string[] = []
  let named = 0
  for (const [, path = '', names = ''] of shown.matchAll(/`(test\/[\w./-]+\.test\.ts)`((?:,? “[^”]+”)*)/g)) {
    named++
    if (!existsSync(path)) missing.push(path)
    for (const [, name = ''] of names.matchAll(/“([^”]+)”/g))
      if (!hasTest(path, name)) missing.push(`${path} “${name}”`)
  }
  if (state !== 'not' && named === 0) return [`${at}: names no test`]
  return missing.map(what => `${at}: there is no test ${what}`)
}

export const conformanceRows = (): string[] =>
  readFileSync(DOCUMENT, 'utf8')
    .split('\n')
    .filter(line => line.startsWith('| ') && !/^\| (---|section \|)/.test(line))

export const conformanceFindings = (): string[] => conformanceRows().flatMap(conformanceRowFindings)
