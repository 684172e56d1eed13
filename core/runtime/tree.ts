import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

// Where the files of this installation lie. Bundled code (scripts/bundle.mjs) lies elsewhere than the sources that it
// was made from, so other files must not look for files relative to themselves.

const here = dirname(fileURLToPath(import.meta.url))

/** The root of the tree: the nearest folder above that has the package.json. */
export const TREE = ((): string => {
  for (let at = here; at !== dirname(at); at = dirname(at)) if (existsSync(join(at, 'package.json'))) return at
  throw new Error(`no package.json above ${here}`)
})()

/** The folder of the bundle; scripts/bundle.mjs puts it in. The output of tsc has no such constant. */
declare const BUNDLE: string
/** The build that this process runs. Entry points have the same path in both. */
const BUILT = join(TREE, typeof BUNDLE === 'string' ? BUNDLE : 'build')

/** Returns the path of a module that runs as a process or a thread, such as `media/process.js`, in our own build. */
export const builtModule = (path: string): string => join(BUILT, path)
