// test/unit mirrors the source tree: the unit tests of a file have its path below test/unit.
import { basename, dirname } from 'node:path'
import type { Source } from './rules.ts'

const UNIT = 'test/unit/'
const TEST = /\.test\.ts$/

/**
 * Finds unit tests in the wrong folder. A test belongs in the folder of the source of its name that it imports or that
 * shares its first folder. A test named after a folder, or after no source, tests its own folder.
 */
export function mirrorFindings(all: readonly Source[], isFolder: (path: string) => boolean): string[] {
  const sources = all.map(({ path }) => path).filter(path => !TEST.test(path))
  return all
    .filter(({ path }) => path.startsWith(UNIT) && TEST.test(path))
    .flatMap(({ path, imports }) => {
      const mirrored = dirname(path.slice(UNIT.length))
      const folder = /^(tidy|support)$/.test(mirrored) ? `test/${mirrored}` : mirrored
      const name = basename(path).replace(TEST, '')
      if (!isFolder(folder)) return [`${path}: there is no folder ${folder}`]
      if (isFolder(`${folder}/${name}`) || basename(folder) === name) return []
      const area = `${folder.split('/')[0]}/`
      const named = sources
        .filter(source => basename(source).replace(/\.tsx?$/, '') === name)
        .filter(source => imports.includes(source) || source.startsWith(area))
      if (named.length === 0 || named.some(source => dirname(source) === folder)) return []
      return [`${path}: ${named.join(' and ')} has this name: its tests stand in ${UNIT}${dirname(named[0] ?? '')}`]
    })
}
