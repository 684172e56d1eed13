import { createHmac } from 'node:crypto'
import { namesOfRoles, processesOf } from '../core/domain/machines/roles.ts'
import { addressesOf, type Config, VARIABLES } from '../core/runtime/config.ts'
import type { Machine } from '../core/runtime/machine.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { TREE } from '../core/runtime/tree.ts'
import type { State } from '../core/state/index.ts'
import { CONTRACTS } from '../core/state/migrations/index.ts'
import type { StartedMachine } from '../core/state/nodes/machines.ts'
import { type NodeRow, signalingNodes } from '../core/state/nodes/nodes.ts'
import { versionAt } from './service/places.ts'

type Shared = readonly [variable: { readonly name: string }, value: (config: Config) => unknown]

const v = VARIABLES
/** The settings that machines which share a database must have in common: a call must not depend on where it lands. */
const SHARED: readonly Shared[] = [
  [v.master_key, ({ master_key }) => master_key.toString('hex')],
  [v.domain, ({ domain }) => domain],
  [v.allow_private, ({ allow_private_webhooks }) => allow_private_webhooks],
  [v.operator_sources, ({ operator_sources }) => operator_sources],
  [v.recordings, ({ recordings_quota_bytes }) => recordings_quota_bytes],
  [v.dead_call, ({ dead_call_seconds }) => dead_call_seconds],
  [v.run_log_days, ({ run_log_days }) => run_log_days],
  [v.smtp, ({ smtp_url }) => smtp_url],
  [v.smtp_from, ({ smtp_from }) => smtp_from],
  [v.sms_url, ({ sms_url }) => sms_url],
  [v.sms_token, ({ sms_token }) => sms_token],
  [v.siprec, ({ siprec }) => siprec],
  [v.s3_endpoint, ({ s3 }) => s3?.endpoint],
  [v.s3_bucket, ({ s3 }) => s3?.bucket],
  [v.redis_url, ({ redis_url }) => redis_url],
]
const HASH_CHARS = 16
/** What a machine needs beside them to reach the same store of files. */
const OF_THE_STORE = [v.s3_region, v.s3_access_key, v.s3_secret_key]

/** The names of the settings that machines have in common. */
export const sharedNames = (): string[] =>
  [...SHARED.map(([variable]) => variable), ...OF_THE_STORE].map(one => one.name)

const VERSION = versionAt(TREE) ?? 'unknown'

/** Returns what a machine tells others of itself. Its settings are hashed with the master key, as some are secrets. */
export const thisMachine = (config: Config, id: string): StartedMachine => ({
  id,
  host: config.host,
  base_url: config.base_url,
  sip_port: config.sip_port,
  takes_calls: processesOf(config.roles).length > 0 ? 1 : 0,
  roles: namesOfRoles(config.roles),
  hosts: addressesOf(config)
    .map(({ host }) => host)
    .join(' '),
  version: VERSION,
  contracts: [VERSION, ...CONTRACTS].join(' '),
  settings: JSON.stringify(
    Object.fromEntries(
      SHARED.map(([{ name }, value]) => {
        const text = `${name}=${JSON.stringify(value(config) ?? null)}`
        return [name, createHmac('sha256', config.master_key).update(text).digest('hex').slice(0, HASH_CHARS)]
      }),
    ),
  ),
})

/** Longer than the time between two heartbeats. */
export const TWIN_MS = 5000

/**
 * Refuses to start beside another machine with the same id, whose data folder was copied: each would end the calls of
 * the other as those of its predecessor. A node of an earlier boot shows no sign of life while `wait` lasts.
 * @throws StartRefused
 */
export async function refuseTwin(state: State, own: Machine, wait: () => Promise<void>): Promise<void> {
  const ofOtherBoots = async (): Promise<NodeRow[]> =>
    (await signalingNodes(state.db, own.machine_id)).filter(({ boot_id }) => boot_id !== own.boot_id)
  const before = new Map((await ofOtherBoots()).map(({ id, heartbeat_at }) => [id, heartbeat_at]))
  if (before.size === 0) return
  await wait()
  if ((await ofOtherBoots()).every(({ id, heartbeat_at }) => before.get(id) === heartbeat_at)) return
  throw new StartRefused(
    `another machine runs as ${own.machine_id}: this data folder is a copy of its folder. Delete machine.id in the copy`,
  )
}
