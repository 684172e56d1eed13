import { hash } from 'node:crypto'
import type { Query } from './admission/steps.ts'
import type { AuditEventTable } from './index.ts'

/** The hash chain of the audit trail; a procedure, so that no event can come between the last one and the next. */

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

/** Inserts an event behind the last one of its organization. */
export function chainAudit(query: Query, event: UnchainedEvent): void {
  const [last] = query(
    'select hash from audit_event where organization_id = ? order by position desc limit 1',
    event.organization_id,
  )
  const previous_hash = typeof last?.['hash'] === 'string' ? last['hash'] : FIRST_HASH
  const values = COLUMNS.map(column => event[column])
  query(INSERT, ...values, previous_hash, hashOf({ ...event, previous_hash }))
}

/**
 * Columns that the hash covers, in order. Lengths are part of it, so that no text can move from one column to the next.
 */
const HASHED = ['previous_hash', ...COLUMNS] as const

export function hashOf(row: Omit<AuditEventTable, 'position' | 'hash'>): string {
  const texts = HASHED.map(column => {
    const value = row[column]
    return `${column}=${value === null ? 'n' : `${Buffer.byteLength(String(value))}:${value}`};`
  })
  return hash('sha256', texts.join(''))
}
