// Which packages of production a running platform loads, and which only the set-up builds with: those that the bundle
// or the console contains.
import { LEFT_OUT } from '../bundle/left-out.mjs'
import { closure, production } from '../release/contents.mjs'

/** Returns the names of the packages that the bundle leaves outside itself. */
export const leftOutside = manifest =>
  Object.keys(manifest.dependencies).filter(name =>
    LEFT_OUT.some(one => (typeof one === 'string' ? one === name : one.test(name))),
  )

/** Returns the paths of the packages that the bundle leaves outside itself, and of all that they need. */
export const packagesOfRunning = (manifest, lock) => closure(lock, leftOutside(manifest))

/** Returns the paths of the other packages of production, each without the paths inside it. */
export function packagesOfBuilds(manifest, lock) {
  const kept = packagesOfRunning(manifest, lock)
  const holdsKept = path => kept.some(one => one === path || one.startsWith(`${path}/`))
  const others = production(lock).flatMap(([path]) => (holdsKept(path) ? [] : [path]))
  return others.filter(path => !others.some(other => path.startsWith(`${other}/`)))
}
