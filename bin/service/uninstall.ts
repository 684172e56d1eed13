import { existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { StartRefused } from '../../core/runtime/start-refused.ts'
import { at, installedFolder, PLACES, refuseOthers, type System, UNIT, USER, versionAt } from './places.ts'

/** What is removed, and what stays. */
interface Leaving {
  readonly removed: readonly string[]
  readonly kept: readonly string[]
}

/**
 * Lists what `uninstall` removes: the unit, the command, the link, and every version beside it. Settings, data, what
 * commands kept beside the data, and the user go with `purge` alone.
 * @throws StartRefused when another installation's command is asked
 */
export function leavingOf(on: System, { purge }: { readonly purge: boolean }): Leaving {
  refuseOthers(on, 'uninstall')
  if (installedFolder(on) !== on.tree)
    throw new StartRefused(`${on.tree} is not what ${PLACES.link} leads to: use ${PLACES.command} uninstall`)
  const versions = readdirSync(at(on, PLACES.versions))
    .map(name => join(PLACES.versions, name))
    .filter(path => path !== PLACES.link && versionAt(at(on, path)) !== null)
  const own = [dirname(PLACES.settings), PLACES.data, ...besideData(on)]
  const removed = [PLACES.unit, PLACES.command, PLACES.link, ...versions.sort(), ...(purge ? own : [])]
  const there = (path: string): boolean => existsSync(at(on, path))
  return {
    removed: [...removed.filter(there), ...(purge ? [`user ${USER}`] : [])],
    kept: purge ? [] : own.filter(there),
  }
}

/** Archives, databases and logs that `restore` and `upgrade` put beside the data, with its keys. */
function besideData(on: System): string[] {
  const folder = dirname(PLACES.data)
  const is_ours = new RegExp(`^${basename(PLACES.data)}\\.(before-|of-|upgrade\\.)`)
  if (!existsSync(at(on, folder))) return []
  return readdirSync(at(on, folder))
    .filter(name => is_ours.test(name))
    .sort()
    .map(name => join(folder, name))
}

/** Stops the service and removes these. The files of this program go last. */
export async function uninstall(on: System, { removed }: Leaving): Promise<void> {
  await on.run('systemctl', 'disable', '--now', UNIT)
  const paths = removed.filter(one => one.startsWith('/'))
  const own = (path: string): boolean => at(on, path) === on.tree
  for (const path of [...paths.filter(path => !own(path)), ...paths.filter(own)])
    rmSync(at(on, path), { recursive: true, force: true })
  await on.run('systemctl', 'daemon-reload')
  if (paths.length < removed.length) await on.run('userdel', USER)
}
