import { SERVICE_TYPES } from '../../core/domain/admission/index.ts'
import { WEEKDAYS } from '../../core/domain/policies/calling-hours.ts'
import { CURRENCY } from '../../core/domain/rating/currency.ts'
import { dayEnds, dayOf, MICRO_PER_MINOR } from '../../core/domain/rating/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { listContainments } from '../../core/state/alerts/containments.ts'
import { countLiveCalls, spentOn } from '../../core/state/calls/counters.ts'
import { findRecordingConsent, TERMS_VERSION } from '../../core/state/calls/recording-consent.ts'
import { listRules, type PolicyRow, summarizeRules } from '../../core/state/configuration/policies.ts'
import {
  type AttachmentRow,
  countAttachments,
  listAttachments,
  liveVoiceCalls,
} from '../../core/state/configuration/policy-attachments.ts'
import { findSubtrunk } from '../../core/state/configuration/subtrunks.ts'
import type { Db } from '../../core/state/index.ts'
import { effectivePriceBook, lookupRate } from '../../core/state/money/rates.ts'
import type { ProjectRow } from '../../core/state/people/organizations.ts'
import { findOrganization } from '../../core/state/people/organizations.ts'
import {
  Count64,
  Currency,
  Flag,
  Instant,
  list,
  Money,
  nullable,
  oneOf,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'

export const ServiceType = oneOf(...SERVICE_TYPES)
const Note = nullable(Type.String())
const Ceiling = resource('PolicyCeiling', { configured: nullable(Count64), unit: Type.String() })

/** A window of the hours in which calls may begin (core/domain/policies/calling-hours.ts). */
export const CallingWindow = resource('CallingWindow', {
  days: Type.Array(oneOf(...WEEKDAYS), { minItems: 1, maxItems: 7, uniqueItems: true }),
  from: Type.String({ pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$' }),
  to: Type.String({ pattern: '^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$' }),
})

const summaryFields = {
  id: Type.String(),
  name: Type.String(),
  status: oneOf('active', 'archived'),
  system_default: Flag,
  revision: Count64,
  currency: Currency,
  applied_services: Count64,
  attached_services: Count64,
  attachments: list(
    resource('PolicyAttachmentSummary', { note: Note, service_name: Type.String(), service_type: ServiceType }),
  ),
  calling_hours: nullable(list(CallingWindow)),
  ceilings: resource('PolicyCeilings', {
    concurrency: Ceiling,
    cps: Ceiling,
    max_call_duration: Ceiling,
    daily_spend: resource('DailySpendCeiling', {
      configured_minor: nullable(Money),
      currency: Currency,
      resets_at: Instant,
      used_today_minor: Money,
    }),
    max_destination_rate: resource('MoneyCeiling', { configured_minor: nullable(Money), currency: Currency }),
  }),
  destination_summary: resource('DestinationSummary', {
    allowed_countries: list(Type.String()),
    allowed_prefixes: Count64,
    denied_prefixes: Count64,
  }),
  recording: resource('PolicyRecording', {
    applied: Flag,
    channels: Count64,
    consent: resource('RecordingConsent', {
      accepted: Flag,
      accepted_at: nullable(Instant),
      accepted_by: nullable(Type.String()),
      terms_version: Type.String(),
    }),
    mode: oneOf('off', 'all'),
    retention_days: Type.Integer(),
  }),
}

export const PolicySummary = resource('OutboundPolicySummary', summaryFields)

export const PolicyDetail = resource('OutboundPolicyDetail', {
  ...summaryFields,
  billing_group: Type.String(),
  created_at: Instant,
  created_by: nullable(Type.String()),
  as_of: Instant,
  destinations: resource('PolicyDestinations', {
    allowed: list(
      resource('AllowedDestination', {
        increment_additional_seconds: Count64,
        increment_initial_seconds: Count64,
        kind: oneOf('country', 'prefix'),
        label: Type.String(),
        match: Type.String(),
        rate_minor: nullable(Money),
        rate_unit: oneOf('minute', 'second'),
      }),
    ),
    denied: list(
      resource('DeniedDestination', {
        case_ref: nullable(Type.String()),
        label: Type.String(),
        match: Type.String(),
        source: oneOf('customer', 'containment'),
      }),
    ),
  }),
})

export const PolicyAttachment = resource('PolicyAttachment', {
  applied_at: nullable(Instant),
  apply_state: oneOf('applied', 'pending'),
  attached_at: Instant,
  calls_in_flight: Count64,
  id: Type.String(),
  limits: resource('AttachmentLimits', {
    concurrency: nullable(Count64),
    max_destination_rate_minor: nullable(Money),
  }),
  note: Note,
  outbound_enabled: Flag,
  parent_name: nullable(Type.String()),
  service_id: Type.String(),
  service_name: Type.String(),
  service_type: ServiceType,
})

type Project = Pick<ProjectRow, 'id' | 'organization_id'>

/** Converts a rate to whole minor units, rounded up, so that the shown rate is never below the charged one. */
export const rateMinor = (rate_micro: number): number => Math.ceil(rate_micro / MICRO_PER_MINOR)

export async function presentPolicy(
  db: Db,
  project: Project,
  policy: PolicyRow,
  now_ms: number,
): Promise<Static<typeof PolicySummary>> {
  const attachments = await listAttachments(db, policy.id)
  const counted = (await countAttachments(db, [policy.id])).get(policy.id)
  const consent = await findRecordingConsent(db, project.id)
  const zone = (await findOrganization(db, project.organization_id))?.time_zone ?? 'UTC'
  const shown: Static<typeof PolicySummary>['attachments'] = []
  for (const attachment of attachments) {
    const { name } = await SERVICES[attachment.service_type](db, attachment)
    shown.push({ note: attachment.note, service_name: name, service_type: attachment.service_type })
  }
  return {
    id: policy.id,
    name: policy.name,
    status: policy.status,
    system_default: policy.system_default === 1,
    revision: policy.revision,
    currency: CURRENCY,
    applied_services: counted?.applied ?? 0,
    attached_services: counted?.attached ?? 0,
    attachments: shown,
    calling_hours: policy.calling_hours === null ? null : JSON.parse(policy.calling_hours),
    ceilings: {
      concurrency: { configured: policy.concurrency, unit: 'calls' },
      cps: { configured: policy.cps, unit: 'calls_per_second' },
      max_call_duration: { configured: policy.max_call_duration_seconds, unit: 'seconds' },
      daily_spend: {
        configured_minor: policy.daily_spend_limit_minor,
        currency: CURRENCY,
        resets_at: iso(dayEnds(now_ms, zone)),
        used_today_minor: await spentOn(db, 'policy', policy.id, dayOf(now_ms, zone)),
      },
      max_destination_rate: { configured_minor: policy.max_destination_rate_minor, currency: CURRENCY },
    },
    destination_summary: (await summarizeRules(db, policy.id)) as Static<typeof PolicySummary>['destination_summary'],
    recording: {
      applied: policy.recording_mode === 'all' && consent !== undefined,
      channels: policy.recording_channels,
      consent: {
        accepted: consent !== undefined,
        accepted_at: consent?.accepted_at ?? null,
        accepted_by: consent?.accepted_by ?? null,
        terms_version: consent?.terms_version ?? TERMS_VERSION,
      },
      mode: policy.recording_mode,
      retention_days: policy.recording_retention_days,
    },
  }
}

export async function presentPolicyDetail(
  db: Db,
  project: Project,
  policy: PolicyRow,
  now_ms: number,
): Promise<Static<typeof PolicyDetail>> {
  return {
    ...(await presentPolicy(db, project, policy, now_ms)),
    billing_group: policy.billing_group,
    created_at: policy.created_at,
    created_by: policy.created_by,
    as_of: iso(now_ms),
    destinations: await destinationsOf(db, project, policy, iso(now_ms)),
  }
}

type Destinations = Static<typeof PolicyDetail>['destinations']

async function destinationsOf(db: Db, project: Project, policy: PolicyRow, now: string): Promise<Destinations> {
  const book = await effectivePriceBook(db, project.id, 'outbound', now)
  const allowed: Destinations['allowed'] = []
  for (const rule of await listRules(db, policy.id, 'allow')) {
    const rate = book && (await lookupRate(db, book.id, rule.prefix))
    allowed.push({
      increment_additional_seconds: rate?.increment_additional_seconds ?? 0,
      increment_initial_seconds: rate?.increment_initial_seconds ?? 0,
      kind: rule.kind,
      label: rule.label ?? rule.value,
      match: rule.value,
      rate_minor: rate ? rateMinor(rate.rate_micro) : null,
      rate_unit: rate?.rate_unit ?? 'minute',
    })
  }
  const denied: Destinations['denied'] = (await listRules(db, policy.id, 'deny')).map(rule => ({
    case_ref: null,
    label: rule.label ?? rule.value,
    match: rule.value,
    source: 'customer',
  }))
  const contained = (await listContainments(db, project.id, { since: now })).map(containment => ({
    case_ref: containment.case_ref,
    label: containment.reason_detail,
    match: `+${containment.prefix}`,
    source: 'containment' as const,
  }))
  return { allowed, denied: [...denied, ...contained] }
}

interface Service {
  readonly name: string
  readonly parent_name: string | null
  readonly concurrency: number | null
  readonly max_destination_rate_minor: number | null
}

const NONE = { parent_name: null, concurrency: null, max_destination_rate_minor: null }

const trunkOf = (db: Db, id: string) =>
  db.selectFrom('trunk').select(['name', 'concurrency']).where('id', '=', id).executeTakeFirst()

/** Reads the service that a policy is attached to, by its type. A deleted service has its id as its name. */
const SERVICES: Readonly<Record<Static<typeof ServiceType>, (db: Db, attachment: AttachmentRow) => Promise<Service>>> =
  {
    automation: async () => ({ name: 'Automation', ...NONE }),
    async voice_application(db, { service_id: id }) {
      const row = await db.selectFrom('voice_application').select('name').where('id', '=', id).executeTakeFirst()
      return { ...NONE, name: row?.name ?? id }
    },
    async trunk(db, { service_id: id }) {
      const row = await trunkOf(db, id)
      return { ...NONE, name: row?.name ?? id, concurrency: row?.concurrency ?? null }
    },
    async subtrunk(db, { service_id: id, project_id }) {
      const row = await findSubtrunk(db, project_id, id)
      if (!row) return { ...NONE, name: id }
      const { name, concurrency, max_destination_rate_minor } = row
      const parent_name = (await trunkOf(db, row.trunk_id))?.name ?? null
      return { name, parent_name, concurrency, max_destination_rate_minor }
    },
  }

export async function presentAttachments(db: Db, policy: PolicyRow): Promise<Static<typeof PolicyAttachment>[]> {
  const shown: Static<typeof PolicyAttachment>[] = []
  for (const attachment of await listAttachments(db, policy.id)) {
    const { name, parent_name, concurrency, max_destination_rate_minor } = await SERVICES[attachment.service_type](
      db,
      attachment,
    )
    const { service_type, service_id } = attachment
    shown.push({
      applied_at: attachment.applied_at,
      apply_state: attachment.applied_at === null ? 'pending' : 'applied',
      attached_at: attachment.attached_at,
      calls_in_flight: await callsInFlight(db, attachment),
      id: attachment.id,
      limits: { concurrency, max_destination_rate_minor },
      note: attachment.note,
      outbound_enabled: attachment.outbound_enabled === 1,
      parent_name,
      service_id,
      service_name: name,
      service_type,
    })
  }
  return shown
}

async function callsInFlight(db: Db, { service_type, service_id, project_id }: AttachmentRow): Promise<number> {
  if (service_type === 'trunk' || service_type === 'subtrunk')
    return (await countLiveCalls(db, service_type, [service_id])).get(service_id) ?? 0
  return liveVoiceCalls(db, project_id, service_id)
}
