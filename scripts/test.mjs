// `npm test` runs everything; `npm test -- test/flows` or `npm test -- test/unit/x.test.ts` runs a part.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const testsBelow = folder =>
  readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    if (entry.isDirectory()) return testsBelow(join(folder, entry.name))
    return entry.name.endsWith('.test.js') ? [join(folder, entry.name)] : []
  })

const compiled = argument => {
  if (argument.startsWith('-')) return [argument]
  const path = join('build', argument.replace(/\.ts$/, '.js'))
  if (!existsSync(path)) return [argument]
  return statSync(path).isDirectory() ? testsBelow(path) : [path]
}

const args = process.argv.slice(2)
if (args.length === 0) {
  const check = spawnSync(process.execPath, ['scripts/check.mjs'], { stdio: 'inherit' })
  if (check.status !== 0) process.exit(check.status ?? 1)
}
process.exit(spawnSync('node_modules/.bin/tap', args.flatMap(compiled), { stdio: 'inherit' }).status ?? 1)
