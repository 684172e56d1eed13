import type { AlertKind, Resolution, Threshold } from '../../core/domain/alerts/index.ts'
import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { iso } from '../../core/runtime/clock.ts'
import {
  type AlertSettingRow,
  alertSettings,
  listAlertPolicies,
  putAlertSettings,
  revisePolicy,
} from '../../core/state/alerts/alert-policies.ts'
import { hasSubject } from '../../core/state/alerts/alert-subjects.ts'
import { listAlerts } from '../../core/state/alerts/alerts.ts'
import { listContainments } from '../../core/state/alerts/containments.ts'
import { acknowledge, acknowledgedChange } from '../alerts/acknowledge.ts'
import { mayUse } from '../http/access.ts'
import { invalid, isRefusal, notFound } from '../http/reply.ts'
import {
  E164,
  Flag,
  Instant,
  Int32,
  Int64,
  input,
  line,
  list,
  listOf,
  nullable,
  oneOf,
  optional,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import {
  Alert,
  AlertChannel,
  AlertPolicy,
  Containment,
  presentAlert,
  presentAlertPolicy,
  presentContainments,
  ResolutionRule,
  SubjectKind,
  seesAlerts,
} from './alert-present.ts'
import { alertRoute, route } from './route.ts'
import { seenTrunks } from './seen-trunks.ts'

const RANGE_DAYS = { '24h': 1, '7d': 7, '30d': 30, '90d': 90 } as const
const DAY_MS = 86_400_000

const AmountOrNull = optional(nullable(Int64))
const CountOrNull = optional(nullable(Int32))
const Percent = Type.String({ pattern: '^(100|[0-9]{1,2}(\\.[0-9]{1,2})?)$' })
const PercentOrNull = optional(nullable(Percent))
const CurrencyOrNull = optional(nullable(oneOf(CURRENCY)))

const PolicyChanges = input('AlertPolicyChanges', {
  channels: optional(nullable(list(AlertChannel, { maxItems: 4, uniqueItems: true }))),
  enabled: optional(nullable(Flag)),
  resolution: optional(
    input('AlertResolutionInput', {
      rule: ResolutionRule,
      amount_minor: AmountOrNull,
      count: CountOrNull,
      currency: CurrencyOrNull,
      for_seconds: CountOrNull,
      percent: PercentOrNull,
    }),
  ),
  scope: optional(
    input('AlertScopeInput', {
      id: optional(nullable(Type.String({ minLength: 1, maxLength: 128 }))),
      label: line(120),
      type: SubjectKind,
    }),
  ),
  threshold: optional(
    input('AlertThresholdInput', {
      amount_minor: AmountOrNull,
      currency: CurrencyOrNull,
      min_events: CountOrNull,
      percent: PercentOrNull,
      window_seconds: CountOrNull,
    }),
  ),
})

/** The resolution rules that each kind allows. The first is the default. */
const RULES: Readonly<Record<AlertKind, readonly Resolution['rule'][]>> = {
  balance_low: ['below_threshold', 'acknowledged_or_24h'],
  spend_daily: ['day_rollover'],
  spend_monthly: ['month_rollover'],
  spend_velocity: ['below_threshold', 'acknowledged_or_24h'],
  first_seen_high_cost_destination: ['acknowledged_or_24h'],
  new_source_ip: ['acknowledged_or_24h'],
  endpoint_health: ['consecutive_successes', 'acknowledged_or_24h'],
  trunk_apply_failed: ['later_revision'],
}

const Settings = resource('AlertSettings', {
  email_recipients: nullable(list(Type.String())),
  quiet_from: nullable(Type.String()),
  quiet_to: nullable(Type.String()),
  sms_recipients: list(Type.String()),
  updated_at: nullable(Instant),
})
const TimeOfDay = Type.String({ pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$' })
const Email = Type.String({ maxLength: 254, pattern: '^[^@\\s<>",;:\\\\]{1,64}@[A-Za-z0-9.-]{1,189}$' })
const SettingsInput = input('AlertSettingsInput', {
  email_recipients: nullable(list(Email, { maxItems: 20, uniqueItems: true })),
  quiet_from: nullable(TimeOfDay),
  quiet_to: nullable(TimeOfDay),
  sms_recipients: list(E164, { maxItems: 20, uniqueItems: true }),
})

const presentSettings = (row: AlertSettingRow): Static<typeof Settings> => ({
  email_recipients: row.email_recipients === null ? null : JSON.parse(row.email_recipients),
  quiet_from: row.quiet_from,
  quiet_to: row.quiet_to,
  sms_recipients: JSON.parse(row.sms_recipients),
  updated_at: row.revision === 0 ? null : row.updated_at,
})

export const alerts = [
  route({
    method: 'get',
    path: '/alerts',
    summary: 'Alerts and containments that were open in a range, newest first',
    description:
      'Alerts about balances and budgets are shown to the roles that may read bills; with `billing:read` alone they are all that is shown. A key restricted to a subaccount sees those of its trunks.',
    scope: 'service_configuration:read',
    or_scope: 'billing:read',
    restricted_keys: true,
    query: Type.Object(
      {
        range: optional(oneOf('24h', '7d', '30d', '90d')),
        trunk_id: optional(Type.String({ pattern: '^trk_', maxLength: 64 })),
      },
      { additionalProperties: false },
    ),
    replies: {
      200: resource('AlertOverview', { alerts: list(Alert), as_of: Instant, containments: list(Containment) }),
    },
    async run({ db, project, caller, query: { range = '24h', trunk_id }, now, services }) {
      const trunk_ids = await seenTrunks(db, project.id, caller, trunk_id)
      if (trunk_ids === 'none') return notFound(`trunk ${trunk_id ?? ''}`)
      const since = iso(services.clock.now() - RANGE_DAYS[range] * DAY_MS)
      const rows = await listAlerts(db, project.id, { since, ...(trunk_ids ? { trunk_ids } : {}) })
      const containments = mayUse(caller, 'service_configuration:read')
        ? await listContainments(db, project.id, { since, ...(trunk_id ? { trunk_id } : {}) })
        : []
      const seen = ({ trunk_id: of }: { readonly trunk_id: string | null }) =>
        caller.subaccount_id === null || (of !== null && trunk_ids?.includes(of) === true)
      return {
        status: 200,
        body: {
          alerts: rows.filter(row => seesAlerts(row.kind, caller)).map(presentAlert),
          as_of: now,
          containments: await presentContainments(db, containments.filter(seen)),
        },
      }
    },
  }),

  route({
    method: 'get',
    path: '/alerts/policies',
    summary: 'Read when alerts fire, how they end and where they are sent',
    scope: 'service_configuration:read',
    or_scope: 'billing:read',
    context: 'organization',
    replies: { 200: listOf(AlertPolicy) },
    async run({ db, caller }) {
      const rows = await listAlertPolicies(db, caller.organization_id)
      return { status: 200, body: { data: rows.filter(row => seesAlerts(row.kind, caller)).map(presentAlertPolicy) } }
    },
  }),

  alertRoute({
    method: 'patch',
    path: '/alerts/policies/{policy_id}',
    summary: 'Save the next revision of an alert policy; alerts that are open keep theirs',
    description:
      'What is absent or null stays as it is; inside `threshold`, null takes a value away. A revision is never changed after it was saved.',
    scope: 'service_configuration:write',
    context: 'organization',
    if_match: 'alert_policy',
    idempotent: true,
    audit: { kind: 'alerts', action: 'alert_policy.updated' },
    body: PolicyChanges,
    replies: { 200: AlertPolicy },
    async run({ db, alert_policy: row, body, caller, now }) {
      if (!seesAlerts(row.kind, caller)) return notFound(`alert policy ${row.id}`)
      const threshold: Threshold = { ...JSON.parse(row.threshold), ...body.threshold }
      const wrong = wrongThreshold(row.kind, threshold)
      if (wrong) return invalid('/threshold', wrong)
      const rule = body.resolution?.rule
      if (rule !== undefined && !RULES[row.kind].includes(rule))
        return invalid('/resolution/rule', `of ${row.kind} is ${RULES[row.kind].join(' or ')}`)
      const { id = null, type } = body.scope ?? {}
      if (type && id !== null && !(await hasSubject(db, caller.organization_id, { type, id })))
        return invalid('/scope/id', `is no ${type.replace('_', ' ')} of the organization`)
      const before = presentAlertPolicy(row)
      const saved = await revisePolicy(db, row, changesOf(body, threshold), {
        updated_at: now,
        updated_by: caller.actor.name,
      })
      const after = presentAlertPolicy(saved)
      return {
        status: 200,
        revision: saved.revision,
        body: after,
        change: {
          resource: { type: 'alert_policy', id: row.id, name: row.kind, href: '/v1/alerts/policies' },
          summary: `Changed the alert policy ${row.kind}`,
          before,
          after,
          from_revision: row.revision,
          to_revision: saved.revision,
        },
      }
    },
  }),

  route({
    method: 'get',
    path: '/alerts/settings',
    summary: 'Read the recipients of alerts, and the quiet times',
    description:
      'Without `email_recipients`, admins of the organization are told, with its engineers or, about money, its billing members. In quiet times (of the organization, over midnight when `quiet_from` is later) messages that are not critical wait.',
    scope: 'service_configuration:read',
    replies: { 200: Settings },
    async run({ db, project }) {
      return { status: 200, body: presentSettings(await alertSettings(db, project.id)) }
    },
  }),

  route({
    method: 'put',
    path: '/alerts/settings',
    summary: 'Set the recipients of alerts, and the quiet times',
    scope: 'service_configuration:write',
    audit: { kind: 'alerts', action: 'alert_settings.updated' },
    body: SettingsInput,
    replies: { 200: Settings },
    async run({ db, project, body, now }) {
      if ((body.quiet_from === null) !== (body.quiet_to === null))
        return invalid('/quiet_to', 'and quiet_from go together')
      const known = await alertSettings(db, project.id)
      const row: AlertSettingRow = {
        project_id: project.id,
        email_recipients: body.email_recipients === null ? null : JSON.stringify(body.email_recipients),
        sms_recipients: JSON.stringify(body.sms_recipients),
        quiet_from: body.quiet_from,
        quiet_to: body.quiet_to,
        revision: known.revision + 1,
        updated_at: now,
      }
      await putAlertSettings(db, row)
      const after = presentSettings(row)
      return {
        status: 200,
        body: after,
        change: {
          resource: { type: 'alert_settings', id: project.id, name: project.name, href: '/v1/alerts/settings' },
          summary: 'Changed the recipients of alerts',
          before: presentSettings(known),
          after,
        },
      }
    },
  }),

  route({
    method: 'post',
    path: '/alerts/{alert_id}/acknowledge',
    summary: 'Acknowledge an alert',
    description:
      'An alert whose rule is `acknowledged_or_24h` is resolved by it; others go on until their rule ends them.',
    scope: 'service_configuration:write',
    audit: { kind: 'alerts', action: 'alert.acknowledged' },
    replies: { 200: Alert },
    refusals: ['state_conflict'],
    async run({ db, alert, caller, services }) {
      if (!seesAlerts(alert.kind, caller)) return notFound(`alert ${alert.id}`)
      const { clock, settings } = services
      const { base_url } = settings
      const row = await acknowledge(db, alert, { by: caller.actor.name, now_ms: clock.now(), base_url })
      if (isRefusal(row)) return row
      const change = row === alert ? null : acknowledgedChange(row)
      return { status: 200, body: presentAlert(row), change, wake: ['outbox'] as const }
    },
  }),
]

function wrongThreshold(kind: AlertKind, { amount_minor, percent, window_seconds }: Threshold): string | null {
  if (amount_minor !== null && amount_minor < 0) return 'amount_minor is at least 0'
  if (kind.startsWith('spend_') && amount_minor === null && percent === null) return 'needs amount_minor or percent'
  // Nothing spent is as much as nothing.
  if (kind.startsWith('spend_') && (amount_minor === 0 || (percent !== null && Number(percent) === 0)))
    return 'amount_minor and percent are above 0'
  if ((kind === 'balance_low' || kind === 'first_seen_high_cost_destination') && amount_minor === null)
    return 'needs amount_minor'
  if (kind === 'spend_velocity' && (window_seconds === null || window_seconds < 60 || window_seconds > 3600))
    return 'window_seconds of spend_velocity is 60 to 3600'
  return null
}

function changesOf(body: Static<typeof PolicyChanges>, threshold: Threshold) {
  const none = { amount_minor: null, count: null, currency: null, for_seconds: null, percent: null }
  return {
    ...(body.channels ? { channels: JSON.stringify(body.channels) } : {}),
    ...(body.enabled === undefined || body.enabled === null
      ? {}
      : { enabled: body.enabled ? (1 as const) : (0 as const) }),
    ...(body.threshold ? { threshold: JSON.stringify(threshold) } : {}),
    ...(body.resolution ? { resolution: JSON.stringify({ ...none, ...body.resolution }) } : {}),
    ...(body.scope ? { scope: JSON.stringify({ id: null, ...body.scope }) } : {}),
  }
}
