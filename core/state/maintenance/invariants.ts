import { sql } from 'kysely'
import { wrongCounters } from '../calls/counters.ts'
import type { Db } from '../db.ts'

/**
 * Checks the invariants between the rows of a running platform. Each rule is one statement, so that calls that come and
 * go meanwhile do not break it. `strowger doctor`, the soak test and every flow test run it.
 *
 * @returns a sentence for each rule that is broken; empty unless there is a bug.
 */
export async function brokenInvariants(db: Db): Promise<string[]> {
  const adrift = await wrongCounters(db)
  const found = [
    ...(await rowsWithTwoOwners(db)),
    ...adrift.map(
      one => `the counter of ${one.level} ${one.subject_id} says ${one.live}, its leases are ${one.leases}`,
    ),
  ]
  for (const [what, query] of COUNTED) {
    const { rows } = await query.execute(db)
    if (rows.length > 0) found.push(`${what}: ${rows.map(row => row.id).join(', ')}`)
  }
  return found
}

type Found = { readonly id: string }
const SHOWN = sql`limit 5`

const COUNTED = [
  [
    'leases of calls that have ended',
    sql<Found>`select l.call_sid as id from lease l join call c on c.sid = l.call_sid
      where l.ended_at is null and c.ended_at is not null ${SHOWN}`,
  ],
  [
    'calls with an INVITE out and no lease',
    sql<Found>`select a.call_sid as id from call_attempt a
      where a.sip_call_id is not null
      and not exists (select 1 from lease l where l.call_sid = a.call_sid) ${SHOWN}`,
  ],
  [
    'calls held or charged on an account that is not their project’s',
    sql<Found>`select r.call_sid as id from reservation r join project p on p.id = r.project_id
      where r.billing_account_id <> p.billing_account_id and r.begun_at >= p.billing_effective_from ${SHOWN}`,
  ],
  [
    'numbers routed to what is another project’s',
    sql<Found>`select n.e164 as id from number n where n.project_id is not null and n.project_id <> coalesce(
      (select project_id from voice_application where id = n.route_id),
      (select project_id from trunk where id = n.route_id),
      (select project_id from subtrunk where id = n.route_id), n.project_id) ${SHOWN}`,
  ],
  [
    'ledger entries of another payer than their call’s',
    sql<Found>`select g.call_sid as id from ledger g join reservation r on r.call_sid = g.call_sid
      where g.billing_account_id <> r.billing_account_id or g.project_id <> r.project_id ${SHOWN}`,
  ],
  [
    'calls that were charged more than once',
    sql<Found>`select call_sid as id from ledger where kind = 'charge' and call_sid is not null
      group by call_sid having count(*) > 1 ${SHOWN}`,
  ],
  [
    'accounts whose held money is not what their running calls hold',
    sql<Found>`select b.id from billing_account b where b.held_minor <> coalesce(
      (select sum(r.held_minor) from reservation r
        where r.billing_account_id = b.id and r.settled_at is null), 0) ${SHOWN}`,
  ],
  [
    'accounts whose balance is not the sum of their ledger',
    sql<Found>`select b.id from billing_account b
      join (select billing_account_id, min(position) as first, max(position) as last, sum(amount_minor) as total
        from ledger group by billing_account_id) g on g.billing_account_id = b.id
      join ledger f on f.position = g.first
      join ledger l on l.position = g.last
      where b.balance_minor <> l.balance_after_minor
      or l.balance_after_minor <> f.balance_after_minor - f.amount_minor + g.total ${SHOWN}`,
  ],
] as const

/** Foreign-key columns that are not named after their table. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  'call.parent_call_sid': 'call',
  'call.application_id': 'voice_application',
  'containment.source_alert_id': 'alert',
  'lease.policy_id': 'outbound_policy',
  'lease.parent_policy_id': 'outbound_policy',
  'policy_attachment.policy_id': 'outbound_policy',
  'delegation.block_id': 'number_block',
}
/** A call to one of our numbers also holds a slot on the called side. That lease belongs to the called project. */
const TWO_SIDED = new Set(['lease.call_sid'])

/**
 * Finds rows that refer to resources of two projects. Column names give the references (`trunk_id` is a row of
 * `trunk`), so that new tables need no line here.
 */
async function rowsWithTwoOwners(db: Db): Promise<string[]> {
  const tables = await db.introspection.getTables()
  const columns = new Map(tables.map(({ name, columns }) => [name, columns.map(column => column.name)]))
  const hasProject = (table: string): boolean => columns.get(table)?.includes('project_id') ?? false
  const keyOf = (table: string): string => (columns.get(table)?.includes('sid') ? 'sid' : 'id')
  const found: string[] = []
  for (const [table, names] of columns) {
    const owners = names.flatMap(column => {
      const named = OTHER_NAMES[`${table}.${column}`]
      const of = named ?? column.replace(/_(id|sid)$/, '')
      const itself = of === column || (of === table && !named)
      const implied = itself || of === 'project' || TWO_SIDED.has(`${table}.${column}`)
      return !implied && hasProject(of) ? [{ column, of }] : []
    })
    const [first, ...others] = owners
    if (!first) continue
    const own = hasProject(table)
    const joins = (own ? owners : others).map(({ column, of }) => ({ column, of }))
    for (const { column, of } of joins) {
      const theirs = sql`join ${sql.table(of)} as o on ${sql.ref(`o.${keyOf(of)}`)} = ${sql.ref(`t.${column}`)}`
      const ours = own
        ? sql``
        : sql`join ${sql.table(first.of)} as f on ${sql.ref(`f.${keyOf(first.of)}`)} = ${sql.ref(`t.${first.column}`)}`
      const { rows } = await sql`select 1 from ${sql.table(table)} as t ${theirs} ${ours}
        where o.project_id <> ${sql.ref(own ? 't.project_id' : 'f.project_id')} ${SHOWN}`.execute(db)
      if (rows.length > 0) found.push(`rows of ${table} whose ${column} is of another project: ${rows.length} or more`)
    }
  }
  return found
}
