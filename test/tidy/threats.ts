import { existsSync, readFileSync } from 'node:fs'

const DOCUMENT = 'docs/threats.md'

/** Reports whether a file has a test of this name that is not skipped. */
export function hasTest(path: string, name: string): boolean {
  if (!existsSync(path)) return false
  const text = readFileSync(path, 'utf8')
  return ["'", '"', '`'].some(quote => {
    const quoted = `${quote}${name}${quote}`
    const at = text.indexOf(quoted)
    if (at < 0) return false
    const [before, after] = [text.slice(0, at), text.slice(at + quoted.length)]
    // CI runs such a test. It is skipped only behind a drachtio-server (test/support/edges.ts).
    if (/\.test\(\.\.\.onEmbedded\(\s*$/.test(before)) return true
    return /\.test\(\s*$/.test(before) && /^,(?!\s*\{[^}]*\b(skip|todo)\b)/.test(after)
  })
}

/** Checks a row of docs/threats.md. Its last cell names test files, each followed by a test in that file. */
export function rowFindings(row: string): string[] {
  const cells = row.split(' | ')
  const tests = [...(cells.at(-1) ?? '').matchAll(/`(test\/[\w./-]+\.test\.ts)` “([^”]+)”/g)]
  if (cells.length !== 3 || tests.length === 0) return [`${DOCUMENT}: a row names no test: ${row.slice(0, 80)}`]
  return tests.flatMap(([whole, path = '', name = '']) =>
    hasTest(path, name) ? [] : [`${DOCUMENT}: there is no test ${whole}`],
  )
}

export const threatRows = (): string[] =>
  readFileSync(DOCUMENT, 'utf8')
    .split('\n')
    .filter(line => line.startsWith('| ') && !/^\| (---|threat \|)/.test(line))

export const threatFindings = (): string[] => threatRows().flatMap(rowFindings)
