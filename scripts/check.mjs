// `npm run check`: format, lint, types, then the import rule and the other tidy rules. With `--compiled` the caller has
// just compiled the tree, which checks its types (scripts/setup.mjs).
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

const steps = [
  ['lock file', process.execPath, ['scripts/lock-file.mjs']],
  ['format and lint', 'node_modules/.bin/biome', ['check', '--error-on-warnings', '.']],
  ...(process.argv.includes('--compiled') ? [] : [['types', 'node_modules/.bin/tsc', ['-p', '.', '--singleThreaded']]]),
  ['types of the console', 'node_modules/.bin/tsc', ['-p', 'control/console', '--singleThreaded']],
]
if (existsSync('test/tidy')) steps.push(['tidy', process.execPath, ['build/test/tidy/main.js']])

for (const [name, command, args] of steps) {
  const started = Date.now()
  const { status } = spawnSync(command, args, { stdio: 'inherit' })
  if (status !== 0) {
    console.error(`check: ${name} failed`)
    process.exit(1)
  }
  console.error(`check: ${name} ok in ${Date.now() - started} ms`)
}
