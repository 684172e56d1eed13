import { closest } from '../domain/text/closest.ts'
import { FILE_VARIABLES } from './secret-files.ts'
import { type Environment, VARIABLES } from './variables.ts'

const PREFIX = 'STROWGER_'

/** Names with our prefix that others read: shells after `bootstrap --shell`, the compose files, and the tests. */
const OF_OTHERS: ReadonlySet<string> = new Set([
  'STROWGER_URL',
  'STROWGER_SIP',
  'STROWGER_PROJECT',
  'STROWGER_API_KEY',
  'STROWGER_STOP_GRACE',
  'STROWGER_TLS_DIR',
  'STROWGER_TEST_DRACHTIO',
  'STROWGER_TEST_REPORT',
])

/**
 * A variable of a service link, after the name of the service. Kubernetes gives such variables to each container beside
 * a Service named `strowger` or `strowger-…`, and Docker to containers that are linked to one of that name.
 */
const SERVICE_LINK = /^(STROWGER(?:_\w+?)??)_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_[A-Z]+(?:_[A-Z]+)?)?)$/

/** Whether the variable belongs to a service link. Each has an address, which a mistyped name has not. */
function isServiceLink(name: string, env: Environment): boolean {
  const service = SERVICE_LINK.exec(name)?.[1]
  if (service === undefined) return false
  return env[`${service}_SERVICE_HOST`] !== undefined || /^(tcp|udp|sctp):/.test(env[`${service}_PORT`] ?? '')
}

/** Returns a sentence for each variable with our prefix that nothing reads: ignoring it would mislead. */
export function unknownVariables(env: Environment): string[] {
  const known = [...Object.values(VARIABLES).map(({ name }) => name), ...FILE_VARIABLES]
  return Object.keys(env)
    .filter(
      name =>
        name.startsWith(PREFIX) &&
        env[name] !== undefined &&
        !known.includes(name) &&
        !OF_OTHERS.has(name) &&
        !isServiceLink(name, env),
    )
    .map(unknown => `${unknown} is no variable of ours${suggestion(unknown, known)}`)
}

function suggestion(unknown: string, known: readonly string[]): string {
  // Without the prefix, in which all agree.
  const bare = (name: string): string => name.slice(PREFIX.length)
  const parts = bare(unknown).split('_')
  // A part may be missing: STROWGER_PORT, STROWGER_S3_KEY.
  const longer = known.filter(name => parts.every(part => bare(name).split('_').includes(part)))
  if (longer.length > 0) return `: did you mean ${longer.join(' or ')}?`
  const near = closest(bare(unknown), known.map(bare))
  return near === null ? '; bin/strowger doctor lists them all' : `: did you mean ${PREFIX}${near}?`
}
