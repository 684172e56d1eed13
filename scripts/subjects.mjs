import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Runs build/<folder>/<subject>/main.js for the subject named on the command line, or for all of them in turn. */
export function runSubjects({ what, folder, usage }) {
  const built = join('build', folder)
  const all = existsSync(built) ? readdirSync(built).filter(name => existsSync(join(built, name, 'main.js'))) : []
  const [wanted, ...options] = process.argv.slice(2)
  if (wanted !== undefined && !all.includes(wanted)) {
    console.error(`${usage}\nno ${what} ${wanted}; there are: ${all.join(', ')}`)
    process.exit(2)
  }
  let failed = 0
  for (const subject of wanted === undefined ? all : [wanted]) {
    console.log(`\n== ${what} ${subject}`)
    const { status } = spawnSync(process.execPath, [join(built, subject, 'main.js'), ...options], { stdio: 'inherit' })
    if (status !== 0) failed++
  }
  process.exit(failed === 0 ? 0 : 1)
}
