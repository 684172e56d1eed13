// Runs `npm test` on another version of Node.js: npm run test:on -- 24 test/unit/bin. It comes from the npm registry's
// binary package, into build/node; its npm is that of this machine. The set-up compiles what depends on the version, and
// compiles it again for the next run of `npm test`.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

process.chdir(join(dirname(fileURLToPath(import.meta.url)), '..'))
const [version = '', ...files] = process.argv.slice(2)
if (!/^\d+(\.\d+){0,2}$/.test(version)) throw new Error('name a version: npm run test:on -- 24')

const folder = resolve('build/node', version)
if (!existsSync(folder)) {
  const part = `${folder}.new`
  rmSync(part, { recursive: true, force: true })
  mkdirSync(part, { recursive: true })
  const words = [
    'pack',
    `node-linux-${process.arch}@${version}`,
    '--json',
    '--ignore-scripts',
    '--pack-destination',
    part,
  ]
  const [{ filename }] = JSON.parse(execFileSync('npm', words, { encoding: 'utf8' }))
  execFileSync('tar', ['-xzf', join(part, filename), '-C', part, '--strip-components=1'])
  renameSync(part, folder)
}
const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}` }
const npm = (...words) => spawnSync('npm', words, { stdio: 'inherit', env }).status
console.error(`test:on: Node.js ${execFileSync(join(folder, 'bin/node'), ['--version'], { encoding: 'utf8' }).trim()}`)
process.exitCode = npm('test', '--', ...files) ?? 1
