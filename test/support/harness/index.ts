// What tests import: `t`, the outermost test of their file. Its API is the part of node-tap that our tests use.
// `npm test` runs files through run.ts. A compiled file also runs by itself: `node build/test/unit/x.test.js`.
import { pathToFileURL } from 'node:url'
import { currentRoot, runFiles } from './run.ts'
import { Test } from './test.ts'

export { atProcessEnd } from './run.ts'
export type { Test } from './test.ts'

/** One module serves all files of a process, so this object passes each use on to the file that runs now. */
const t = new Proxy(Test.prototype, {
  get: (_target, key) => {
    const root = currentRoot()
    const value = Reflect.get(root, key, root)
    return typeof value === 'function' ? value.bind(root) : value
  },
  set: (_target, key, value) => {
    const root = currentRoot()
    return Reflect.set(root, key, value, root)
  },
})
export default t

const [, started = ''] = process.argv
if (/\.test\.js$/.test(started)) void runFiles([pathToFileURL(started).href])
