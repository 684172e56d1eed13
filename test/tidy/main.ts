// Checks what the compiler and the linter do not: import rules, unused files, leftovers, overlong lines.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { circleFindings } from './circles.ts'
import { conformanceFindings } from './conformance.ts'
import { decisionFindings } from './decisions.ts'
import { dependencyFindings, type Manifest } from './dependencies.ts'
import { generatedDocuments } from './documents.ts'
import { exportFindings } from './exports.ts'
import { lengthFindings } from './lengths.ts'
import { mirrorFindings } from './mirror.ts'
import { moduleStateFindings } from './module-state.ts'
import { nameFindings } from './names.ts'
import { readerFindings } from './readers.ts'
import { ARROWS, HOMES, type Source } from './rules.ts'
import { threatFindings } from './threats.ts'

const ROOTS = ['core', 'signaling', 'media', 'control', 'markup', 'native', 'bin', 'bench', 'test']
/** Entry points: files that are run, not imported. */
const ENTRY = /(^bin\/main\.ts|\/process\.ts|\/worker\.ts|\.test\.ts|\/main\.ts|^bench\/)/
const LEFTOVER = /\b(TODO|FIXME|XXX|HACK)\b|\.only\(|debugger;?$|console\.log\((?!.*no-tidy)/
const MAX_COLUMNS = 120

function sources(): Source[] {
  return ROOTS.flatMap(root => filesBelow(root)).map(path => {
    const text = readFileSync(path, 'utf8')
    return { path, text, imports: importsOf(path, text) }
  })
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return ['build', 'node_modules'].includes(entry.name) ? [] : filesBelow(path)
    return /\.(ts|tsx)$/.test(entry.name) && !entry.name.endsWith('.d.ts') ? [path] : []
  })
}

function importsOf(path: string, text: string): string[] {
  const specifiers = text.matchAll(/(?:^|\n)\s*(?:import|export)\b[^'"\n;]*(?:\n[^'"\n;]*)*?from\s+['"]([^'"]+)['"]/g)
  const bare = text.matchAll(/(?:^|\n)import\s+['"]([^'"]+)['"]/g)
  const dynamic = text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]\s*\)/g)
  const started = text.matchAll(/new URL\(\s*['"](\.[^'"]+\.js)['"]/g)
  const built = text.matchAll(/\b(?:builtModule|lateThread)\(['"]([^'"]+\.js)['"]\)/g)
  return [
    ...[...specifiers, ...bare, ...dynamic, ...started].map(([, name = '']) =>
      name.startsWith('.') ? resolve(path, name) : name,
    ),
    ...[...built].map(([, name = '']) => name.replace(/\.js$/, '.ts')),
  ]
}

const resolve = (path: string, name: string): string => normalize(join(dirname(path), name)).replace(/\.js$/, '.ts')

function findings(all: readonly Source[]): string[] {
  const imported = new Set(all.flatMap(source => source.imports))
  return all.flatMap(source => [
    ...ARROWS.flatMap(rule => rule(source)),
    ...HOMES.flatMap(([name, homes]) =>
      source.imports.some(item => item === name || item.startsWith(`${name}/`)) && !homes.test(source.path)
        ? [`${source.path}: ${name} may be imported only in ${homes.source}`]
        : [],
    ),
    ...(imported.has(source.path) || ENTRY.test(source.path) ? [] : [`${source.path}: no file imports it`]),
    ...source.text.split('\n').flatMap((line, index) => lineFindings(source.path, line, index + 1)),
  ])
}

function lineFindings(path: string, line: string, number: number): string[] {
  if (path === 'test/tidy/main.ts') return []
  const found: string[] = []
  if (line.length > MAX_COLUMNS && !/https?:\/\/|['"`].{100,}['"`]/.test(line))
    found.push(`${path}:${number}: longer than ${MAX_COLUMNS} columns`)
  if (LEFTOVER.test(line) && !/^(bin|bench|test\/fuzz)\/|^control\/openapi\/samples/.test(path))
    found.push(`${path}:${number}: leftover: ${line.trim()}`)
  return found
}

const outOfDate = generatedDocuments()
  .filter(({ path, text }) => !existsSync(path) || readFileSync(path, 'utf8') !== text)
  .map(({ path }) => `${path} is out of date: npm run documents`)

const all = sources()
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest
const found = [
  ...findings(all),
  ...circleFindings(all, resolve),
  ...exportFindings(all, resolve),
  ...outOfDate,
  ...threatFindings(),
  ...conformanceFindings(),
  ...decisionFindings(all),
  ...readerFindings(all),
  ...lengthFindings(all),
  ...mirrorFindings(all, existsSync),
  ...nameFindings(all),
  ...moduleStateFindings(all),
  ...dependencyFindings(manifest, all, path => readFileSync(path, 'utf8')),
]
for (const finding of found) process.stderr.write(`tidy: ${finding}\n`)
if (found.length > 0) process.exitCode = 1
