import type { Host } from '../../runtime/database-url.ts'
import { StateError } from '../port.ts'
import { withRemedy } from './errors.ts'
import type { Link } from './link.ts'

/** How long a server has to answer before the next one of the list is asked too. */
const HEAD_START_MS = 500

/**
 * Connects to the primary among several servers. It asks `first`, and then the others in their order, each when the one
 * before has failed or is slow: a server that vanished must not hold up the way to the one that took its place.
 * @throws StateError
 */
export function findPrimary(
  hosts: readonly Host[],
  first: Host | undefined,
  open: (host: Host) => Promise<Link>,
): Promise<Link> {
  const order = [...hosts.filter(host => host === first), ...hosts.filter(host => host !== first)]
  const found: string[] = []
  return new Promise((resolve, reject) => {
    let next = 0
    let done = false
    const ask = (): void => {
      const host = order[next++]
      if (done || host === undefined) return
      const slow = setTimeout(ask, HEAD_START_MS)
      askOne(host, open)
        .then(link => {
          if (!done) resolve(link)
          else void link.close()
          done = true
        })
        .catch(error => {
          found.push(
            `${host.name}${error instanceof Standby ? ' is a standby: name its primary, too' : `: ${withRemedy(error)}`}`,
          )
          if (found.length === hosts.length) reject(noPrimary(found))
          else if (next === found.length) ask()
        })
        .finally(() => clearTimeout(slow))
    }
    if (order.length === 0) reject(noPrimary(found))
    ask()
  })
}

const noPrimary = (found: readonly string[]): StateError =>
  new StateError(`no primary was found (${found.join('; ')})`, { code: 'NO_PRIMARY', failure: 'away' })

class Standby extends Error {}

/** Returns a connection to a server that is the primary. @throws StateError, Standby */
async function askOne(host: Host, open: (host: Host) => Promise<Link>): Promise<Link> {
  const link = await open(host)
  try {
    if (!(await link.meet()).standby) return link
  } catch (error) {
    link.destroy()
    throw error
  }
  await link.close()
  throw new Standby()
}
