// `npm run interop` makes calls with programs that nobody here wrote. `npm run interop -- kamailio` runs one of them. A
// subject is test/interop/<subject>/main.ts.
//
//   --install   installs the Debian packages and the npm packages that the subjects need
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setUp } from './interop/needs.mjs'

const built = 'build/test/interop'
const args = process.argv.slice(2)
const install = args.includes('--install')
const wanted = args.filter(arg => arg !== '--install')
const all = existsSync(built) ? readdirSync(built).filter(name => existsSync(join(built, name, 'main.js'))) : []
const unknown = wanted.filter(name => !all.includes(name))
if (unknown.length > 0 || all.length === 0) {
  console.error(`npm run interop -- [--install] [SUBJECT ...]\nsubjects: ${all.join(', ') || 'none; npm run setup'}`)
  process.exit(2)
}

let failed = 0
for (const subject of wanted.length === 0 ? all : wanted) {
  console.log(`\n== interop ${subject}`)
  const lacks = setUp(subject, install)
  if (lacks !== null) {
    console.error(`${lacks}; npm run interop -- --install ${subject} installs it`)
    failed++
    continue
  }
  const env = { ...process.env, PATH: `${process.env.PATH}${delimiter}/usr/sbin` }
  const command = ['build/test/support/harness/main.js', join(built, subject, 'main.js')]
  if (spawnSync(process.execPath, command, { stdio: 'inherit', env }).status !== 0) failed++
}
process.exit(failed === 0 ? 0 : 1)
