import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = 'fixtures/markup/examples'

/** Returns the examples of the published page, by name. */
export const examples = (): readonly { readonly name: string; readonly text: string }[] =>
  readdirSync(FOLDER)
    .sort()
    .map(file => ({ name: file.replace('.xml', ''), text: readFileSync(join(FOLDER, file), 'utf8') }))
