import { hash as digest } from 'node:crypto'
import type { AuditEventTable } from '../db.ts'
import type { Query } from './query.ts'

/** The hash chain of the audit trail. A procedure, so that reading the last hash and inserting are atomic. */

export const FIRST_HASH = '0'.repeat(64)

export type UnchainedEvent = Omit<AuditEventTable, 'position' | 'previous_hash' | 'hash'>

const COLUMNS = [
  'id',
  'organization_id',
  'project_id',
  'at',
  'actor_type',
  'actor_id',
  'actor_name',
  'actor_detail',
  'category',
  'kind',
  'action',
  'summary',
  'detail',
  'resource_type',
  'resource_id',
  'resource_name',
  'resource_href',
  'trunk_id',
  'from_revision',
  'to_revision',
  'request_id',
  'changes',
] as const

const INSERT = `insert into audit_event (${COLUMNS.join(', ')}, previous_hash, hash)
  values (${COLUMNS.map(() => '?').join(', ')}, ?, ?)`

const MOVE_HEAD = `insert into audit_head (organization_id, hash, events) values (?, ?, 1)
  on conflict (organization_id) do update set hash = excluded.hash, events = audit_head.events + 1`

/** Appends an event to its organization's chain. */
export function chainAudit(query: Query, event: UnchainedEvent): void {
  const [head] = query('select hash from audit_head where organization_id = ?', event.organization_id)
  const previous_hash = typeof head?.['hash'] === 'string' ? head['hash'] : FIRST_HASH
  const values = COLUMNS.map(column => event[column])
  const hash = chainedHash(previous_hash, event)
  query(INSERT, ...values, previous_hash, hash)
  query(MOVE_HEAD, event.organization_id, hash)
}

/** Computes the hash of an event from its row in the trail. */
export const hashOf = (row: Omit<AuditEventTable, 'position' | 'hash'>): string => chainedHash(row.previous_hash, row)

/**
 * Hashes the previous hash and every column, in order, each with its length, so that text cannot move from one column
 * to the next.
 */
function chainedHash(previous_hash: string, event: UnchainedEvent): string {
  let text = fieldOf('previous_hash', previous_hash)
  for (const column of COLUMNS) text += fieldOf(column, event[column])
  return digest('sha256', text)
}

function fieldOf(name: string, value: string | number | null): string {
  if (value === null) return `${name}=n;`
  const text = String(value)
  return `${name}=${Buffer.byteLength(text)}:${text};`
}
