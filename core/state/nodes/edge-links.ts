import { rolesInRow } from '../../domain/machines/roles.ts'
import type { MachineAt } from '../../runtime/edge-link.ts'
import type { Db } from '../db.ts'
import { listMachines } from './machines.ts'

/** Saves where the edge of this machine hears those of the others; null: it does not. */
export async function saveEdgeLink(
  db: Db,
  machine_id: string,
  at: Pick<MachineAt, 'host' | 'port'> | null,
): Promise<void> {
  if (at === null) {
    await db.deleteFrom('edge_link').where('machine_id', '=', machine_id).execute()
    return
  }
  const { host, port } = at
  await db
    .insertInto('edge_link')
    .values({ machine_id, host, port })
    .onConflict(conflict => conflict.column('machine_id').doUpdateSet({ host, port }))
    .execute()
}

/** Returns where the edge of a machine hears those of the others. */
export const linkOf = (db: Db, machine_id: string): Promise<MachineAt | undefined> =>
  db.selectFrom('edge_link').selectAll().where('machine_id', '=', machine_id).executeTakeFirst()

/** What the edge of a machine does with another machine's. */
interface Neighbours {
  /** All that run, in order of their ids. */
  readonly others: MachineAt[]
  /** Those with signaling that take calls; all with signaling when none seems to. */
  readonly homes: string[]
  /** Those with an edge that peers reach. */
  readonly fronts: string[]
}

/** A signaling node without a heartbeat for three periods gets no calls from edges of other machines. */
const FRESH_MS = 6000

/** Returns the other machines whose edge or signaling runs, and hears this one's. */
export async function neighboursOf(db: Db, own_id: string, now_ms: number): Promise<Neighbours> {
  const nodes = await db
    .selectFrom('node')
    .select(['machine_id', 'kind', 'heartbeat_at', 'draining_at', 'lost_at'])
    .where('kind', 'in', ['signaling', 'edge'])
    .where('machine_id', '!=', own_id)
    .execute()
  const running = new Set(nodes.map(({ machine_id }) => machine_id))
  const links = await db.selectFrom('edge_link').selectAll().orderBy('machine_id').execute()
  const others = links.filter(({ machine_id }) => running.has(machine_id))
  const linked = new Set(others.map(({ machine_id }) => machine_id))
  const signaling = nodes.filter(({ kind, machine_id }) => kind === 'signaling' && linked.has(machine_id))
  const ready = signaling.filter(
    ({ draining_at, lost_at, heartbeat_at }) =>
      draining_at === null && lost_at === null && Date.parse(heartbeat_at) >= now_ms - FRESH_MS,
  )
  const roles = new Map((await listMachines(db)).map(row => [row.id, rolesInRow(row)]))
  return {
    others,
    homes: [...new Set((ready.length > 0 ? ready : signaling).map(({ machine_id }) => machine_id))].sort(),
    fronts: others.map(({ machine_id }) => machine_id).filter(id => roles.get(id)?.has('edge')),
  }
}

/** Returns the other machines that may have run a call: that of its node, while this is known, else all that run. */
export async function machinesOfCall(db: Db, node_id: string | null, own_id: string): Promise<string[]> {
  const rows = await db
    .selectFrom('node')
    .select(['id', 'machine_id'])
    .where('kind', '=', 'signaling')
    .where('machine_id', '!=', own_id)
    .execute()
  const known = rows.filter(({ id }) => id === node_id)
  return [...new Set((known.length > 0 ? known : rows).map(({ machine_id }) => machine_id))]
}
