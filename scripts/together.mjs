// Files of test/together import test files, which then run in one process and share its platform
// (docs/decisions/0730). A member that is named alone runs alone.
import { readdirSync, readFileSync } from 'node:fs'
import { join, normalize } from 'node:path'

const FOLDER = 'build/test/together'

/** Returns the built test files that a built file of the folder imports. */
const membersOf = file =>
  [...readFileSync(file, 'utf8').matchAll(/^import '([^']+\.test\.js)'/gm)].map(([, path]) =>
    normalize(join(FOLDER, path)),
  )

/** Replaces the members of each group that is there as a whole by the group's file. Paths are of built files. */
export function together(files) {
  const asked = new Set(files.filter(file => !file.startsWith(`${FOLDER}/`)))
  for (const name of readdirSync(FOLDER).filter(name => name.endsWith('.test.js'))) {
    const group = join(FOLDER, name)
    const members = membersOf(group)
    if (!members.every(member => asked.has(member))) continue
    for (const member of members) asked.delete(member)
    asked.add(group)
  }
  return [...asked]
}
