import { newId } from '../../core/runtime/ids.ts'
import type { FieldChange, NewAuditEvent } from '../../core/state/audit.ts'
import type { Caller } from './caller.ts'
import type { Change } from './reply.ts'
import type { Route } from './route.ts'

/** Fields whose values never enter the audit trail; that they changed does. */
const SECRET_FIELD = /(password|secret|token|ha1|totp)/i
const MAX_VALUE_CHARACTERS = 500
/** They change with every write or describe the moment, not the resource. */
const OMITTED = new Set(['revision', 'updated_at', 'as_of', 'apply', 'desired_revision', 'effective_revision'])

/** The audit event of a write. */
export function auditEvent(
  route: Route,
  change: Change,
  context: {
    readonly caller: Caller
    readonly organization_id: string
    readonly project_id: string | null
    readonly now: string
    readonly request_id: string
  },
): NewAuditEvent {
  if (!route.audit) throw new Error(`${route.method} ${route.path} changes things and declares no audit`)
  return {
    id: `aud_${newId.uuid()}`,
    organization_id: context.organization_id,
    project_id: context.project_id,
    at: context.now,
    actor: context.caller.actor,
    category: context.caller.actor.type === 'operator' ? 'operator' : (route.audit.category ?? 'configuration'),
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

/** What differs between two presentations of a resource, field by field; labels are paths such as `limits.cps`. */
export function fieldChanges(before: object | null, after: object | null): FieldChange[] {
  const was = flattened(before)
  const is = flattened(after)
  const changes: FieldChange[] = []
  for (const label of new Set([...was.keys(), ...is.keys()])) {
    const old = was.get(label) ?? null
    const current = is.get(label) ?? null
    if (old === current) continue
    const redacted = SECRET_FIELD.test(label)
    changes.push({
      label,
      before: redacted ? null : old,
      after: redacted ? null : current,
      redacted,
      unchanged: false,
    })
  }
  return changes
}

function flattened(value: object | null, prefix = '', into = new Map<string, string>()): Map<string, string> {
  if (value === null) return into
  for (const [name, item] of Object.entries(value)) {
    if (prefix === '' && OMITTED.has(name)) continue
    const label = prefix === '' ? name : `${prefix}.${name}`
    if (item === null || item === undefined) continue
    if (typeof item === 'object' && !Array.isArray(item)) flattened(item, label, into)
    else into.set(label, textOf(item))
  }
  return into
}

const textOf = (item: unknown): string => {
  const text = typeof item === 'string' ? item : (JSON.stringify(item) ?? '')
  return text.length > MAX_VALUE_CHARACTERS ? `${text.slice(0, MAX_VALUE_CHARACTERS)}...` : text
}
