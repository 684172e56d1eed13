import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { TREE } from '../core/runtime/tree.ts'
import { MIGRATIONS } from '../core/state/migrations/index.ts'

/** The migrations of the newer release: what only adds, and what takes away what the release before may use. */
const TEXT = `,
  "9001-notes": { up: db => db.schema.alterTable("machine").addColumn("note", "text").execute() },
  "9002-no-notes-contract": { up: db => db.schema.dropIndex("nonce_claim_expiry").execute() }}`

/**
 * Makes a release in a new folder that differs from this build by its version and by two migrations, which are put into
 * its copy of the bundle: no option of the product adds migrations. Returns its command.
 */
export function makeNewerRelease(folder: string, version: string): { readonly program: string; readonly main: string } {
  mkdirSync(join(folder, 'build'), { recursive: true })
  const link = (path: string): void => symlinkSync(join(TREE, path), join(folder, path))
  for (const name of readdirSync(TREE)) if (!['build', 'bin', 'package.json', '.git'].includes(name)) link(name)
  for (const name of readdirSync(join(TREE, 'build'))) if (name !== 'bundle') link(`build/${name}`)
  const about = JSON.parse(readFileSync(join(TREE, 'package.json'), 'utf8')) as object
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...about, version }))
  const copy = (path: string): void => cpSync(join(TREE, path), join(folder, path))
  copy('bin/strowger')
  const bundle = 'build/bundle'
  const files = JSON.parse(readFileSync(join(TREE, bundle, 'files.json'), 'utf8')) as readonly string[]
  for (const file of [...files, 'load.cjs', 'files.json'])
    if (!file.endsWith('.map')) {
      mkdirSync(join(folder, bundle, dirname(file)), { recursive: true })
      copy(join(bundle, file))
    }
  const last = Object.keys(MIGRATIONS).at(-1) ?? ''
  const entry = new RegExp(`("${last}":\\s*\\w+)\\s*\\}`)
  const chunks = files.filter(file => file.endsWith('.js')).map(file => join(folder, bundle, file))
  const of_state = chunks.filter(file => entry.test(readFileSync(file, 'utf8')))
  if (of_state.length === 0) throw new Error(`no chunk of the bundle has the migration ${last}`)
  for (const file of of_state) {
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace(entry, (_, kept: string) => kept + TEXT),
    )
    // What V8 compiled is of the text before.
    rmSync(`${file}.code`, { force: true })
  }
  return { program: join(folder, 'bin/strowger'), main: join(folder, bundle, 'bin/main.js') }
}
