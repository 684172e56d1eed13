import { newId } from '../../core/runtime/ids.ts'
import {
  ANY_OPERATOR,
  type AuditActor,
  type FieldChange,
  INSTALLATION,
  type NewAuditEvent,
} from '../../core/state/people/audit.ts'
import type { Caller } from './caller.ts'
import type { Change } from './reply.ts'
import type { Route } from './route.ts'

/** Matches fields whose values never enter the audit trail. The trail records only that they changed. */
const SECRET_FIELD = /(password|secret|token|ha1|totp)/i
const MAX_VALUE_CHARACTERS = 500
/** Fields that change with every write, or that describe the moment and not the resource. */
const OMITTED = new Set(['revision', 'updated_at', 'as_of', 'apply', 'desired_revision', 'effective_revision'])

interface WriteContext {
  readonly caller: Caller
  readonly project_id: string | null
  readonly now: string
  readonly request_id: string
}

/**
 * Returns the audit events of a write, one for each trail that tells it: the caller's organization's, or for an
 * operator the installation's and the customer's.
 */
export function auditEventsOf(route: Route, change: Change, context: WriteContext): NewAuditEvent[] {
  const { caller, project_id } = context
  const { actor } = caller
  // Somebody who accepts an invitation is of no organization yet: the change names it.
  const organization_id = caller.organization_id || (change.customer?.organization_id ?? '')
  const own = auditEvent(route, change, { ...context, organization_id, project_id, actor })
  if (organization_id !== INSTALLATION || !change.customer) return [own]
  return [own, auditEvent(route, change, { ...context, ...change.customer, actor: ANY_OPERATOR })]
}

function auditEvent(
  route: Route,
  change: Change,
  context: Omit<WriteContext, 'caller'> & { readonly organization_id: string; readonly actor: AuditActor },
): NewAuditEvent {
  if (!route.audit) throw new Error(`${route.method} ${route.path} changes things and declares no audit`)
  return {
    id: newId.auditEvent(),
    organization_id: context.organization_id,
    project_id: context.project_id,
    at: context.now,
    actor: context.actor,
    category: context.actor.type === 'operator' ? 'operator' : (route.audit.category ?? 'configuration'),
    kind: route.audit.kind,
    action: change.action ?? route.audit.action,
    summary: change.summary,
    detail: change.detail ?? null,
    resource: change.resource,
    trunk_id: change.trunk_id ?? null,
    from_revision: change.from_revision ?? null,
    to_revision: change.to_revision ?? null,
    request_id: context.request_id,
    changes: fieldChanges(change.before, change.after),
  }
}

/** Returns the fields that differ between two presentations of a resource. Labels are paths such as `limits.cps`. */
function fieldChanges(before: object | null, after: object | null): FieldChange[] {
  const changes: FieldChange[] = []
  compare(before ?? {}, after ?? {}, '', changes)
  return changes
}

type Fields = Readonly<Record<string, unknown>>

function compare(before: object, after: object, prefix: string, into: FieldChange[]): void {
  const names = Object.keys(after)
  // Removed fields come last.
  for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) names.push(name)
  for (const name of names) {
    if (prefix === '' && OMITTED.has(name)) continue
    const old = fieldOf(before, name)
    const current = fieldOf(after, name)
    if (old === current) continue
    if (isGroup(old) || isGroup(current)) {
      // An added or removed group is listed field by field, like a changed one.
      compare(isGroup(old) ? old : {}, isGroup(current) ? current : {}, `${prefix}${name}.`, into)
      if ((isGroup(old) || old === null) && (isGroup(current) || current === null)) continue
    }
    const was = isGroup(old) ? null : textOf(old)
    const is = isGroup(current) ? null : textOf(current)
    if (was === is) continue
    const label = `${prefix}${name}`
    const redacted = SECRET_FIELD.test(label)
    into.push({
      label,
      before: redacted ? null : shortened(was),
      after: redacted ? null : shortened(is),
      redacted,
      unchanged: false,
    })
  }
}

const fieldOf = (fields: object, name: string): unknown => (fields as Fields)[name] ?? null
const isGroup = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns null for a field that does not exist. */
const textOf = (value: unknown): string | null =>
  value === null ? null : typeof value === 'string' ? value : JSON.stringify(value)

const shortened = (text: string | null): string | null =>
  text === null || text.length <= MAX_VALUE_CHARACTERS ? text : `${text.slice(0, MAX_VALUE_CHARACTERS)}...`
