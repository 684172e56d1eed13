import type { Selectable } from 'kysely'
import { rolesInRow } from '../../domain/machines/roles.ts'
import { iso } from '../../runtime/clock.ts'
import { CONFIGURATION } from '../configuration/snapshot.ts'
import type { Db, MachineTable, Trx } from '../db.ts'
import type { State } from '../port.ts'
import type { NodeRow } from './nodes.ts'

/** The machines that share the state: who they are, and how they stand. */

export type MachineRow = Selectable<MachineTable>

/** What a machine was started with. */
export type StartedMachine = Omit<MachineRow, 'started_at' | 'seen_at' | 'certificate' | 'roles' | 'hosts'> &
  Partial<Pick<MachineRow, 'roles' | 'hosts'>>

/** A machine that was not seen for this long is forgotten. */
const KEPT_MS = 30 * 86_400_000

/** Writes what a machine was started with. */
export async function putMachine(db: Db | Trx, machine: StartedMachine, now_ms: number): Promise<void> {
  const row = { ...machine, started_at: iso(now_ms), seen_at: iso(now_ms) }
  await db
    .insertInto('machine')
    .values(row)
    .onConflict(conflict => conflict.column('id').doUpdateSet(row))
    .execute()
}

/** Notes that a machine runs and what its peers must trust, and forgets those that have not run for long. */
export async function seeMachine(db: Db, id: string, certificate: string, now_ms: number): Promise<void> {
  await db
    .updateTable('machine')
    .set({ seen_at: iso(now_ms), certificate })
    .where('id', '=', id)
    .execute()
  await db
    .deleteFrom('machine')
    .where('seen_at', '<', iso(now_ms - KEPT_MS))
    .execute()
}

/** Lists the machines in the order of their ids. */
export const listMachines = (db: Db | Trx): Promise<MachineRow[]> =>
  db.selectFrom('machine').selectAll().orderBy('id').execute()

/**
 * Finds another machine than `own_id` whose edge peers see at a host. A machine that was set up anew has the address of
 * its predecessor, whose row stays for a while: the one that was seen last counts.
 */
export async function edgeAt(db: Db, host: string, own_id: string): Promise<string | undefined> {
  const rows = (await listMachines(db)).filter(row => row.id !== own_id && rolesInRow(row).has('edge'))
  const there = rows.filter(row => row.host === host || row.hosts.split(' ').includes(host))
  return there.sort((a, b) => b.seen_at.localeCompare(a.seen_at))[0]?.id
}

/** Notes that the files of all rows lie on one machine: the only one that has had the state so far. */
export const ownFiles = (state: Pick<State, 'transaction'>, machine_id: string): Promise<void> =>
  state.transaction(async trx => {
    for (const table of ['recording', 'call_export'] as const)
      await trx.updateTable(table).set({ machine_id }).where('machine_id', '!=', machine_id).execute()
  })

/** How far each signaling node has come with the configuration: its revision by node, and the saved one. */
export async function configurationOfNodes(
  db: Db,
): Promise<{ readonly saved: number; readonly of: ReadonlyMap<string, number> }> {
  const saved = await db.selectFrom('configuration').select('revision').executeTakeFirst()
  const rows = await db
    .selectFrom('apply_report')
    .select(['node_id', 'revision'])
    .where('resource_id', '=', CONFIGURATION)
    .execute()
  return { saved: saved?.revision ?? 0, of: new Map(rows.map(({ node_id, revision }) => [node_id, revision])) }
}

/** Reports whether a machine runs whole: which kinds of its processes have given a sign of life since `since_ms`. */
export const aliveKinds = (nodes: readonly NodeRow[], machine_id: string, since_ms: number): NodeRow['kind'][] => {
  const alive = nodes.filter(
    ({ machine_id: of, heartbeat_at, lost_at }) =>
      of === machine_id && lost_at === null && Date.parse(heartbeat_at) >= since_ms,
  )
  return [...new Set(alive.map(({ kind }) => kind))].sort()
}

/** Names the settings in which a machine differs from another one. */
export function differingSettings(one: string, other: string): string[] {
  const [ours, theirs] = [hashesIn(one), hashesIn(other)]
  return [...new Set([...Object.keys(ours), ...Object.keys(theirs)])].filter(name => ours[name] !== theirs[name]).sort()
}

const hashesIn = (json: string): Readonly<Record<string, string>> => JSON.parse(json)
