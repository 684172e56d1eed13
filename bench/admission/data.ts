import type { AdmissionFacts } from '../../core/domain/admission/index.ts'
import { rangeKey, type SourceEntry } from '../../core/domain/identity/index.ts'
import { parseCalled } from '../../core/domain/numbers/parse.ts'
import type { ApplicableRules, DestinationRule } from '../../core/domain/policies/destinations.ts'
import type { Rate } from '../../core/domain/rating/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { type NewCall, NOTHING_YET } from '../../core/state/calls/running-calls.ts'
import type { State, Trx } from '../../core/state/index.ts'
import type { AdmissionRequest } from '../../core/state/procedures/admission/request.ts'
import {
  accountRow,
  attachmentRow,
  numberRow,
  organizationRow,
  policyRow,
  priceBookRow,
  projectRow,
  ROWS_AT,
  targetRow,
  trunkRow,
} from './rows.ts'

/** The amount of configuration that a decision searches. */
export interface Sizes {
  readonly trunks: number
  readonly sources: number
  readonly rules: number
  readonly rates: number
}

const PROJECT_ID = 'prj_bench'
const POLICY_ID = 'pol_bench'

/** Yields sources spread over all of 10.0.0.0/8. A third of them are /24 networks. */
export function* someSources({ sources, trunks }: Sizes): Generator<SourceEntry<{ id: string }>> {
  for (let i = 0; i < sources; i++) {
    const address = (i * 2_654_435_761) % 0x1000000
    const octets = `10.${address >>> 16}.${(address >>> 8) & 255}.${address & 255}`
    const owner = { id: `trk_${i % trunks}` }
    yield { cidr: i % 3 === 0 ? `${octets}/24` : `${octets}/32`, selector_precedence: i % 5, owner }
  }
}

/** Yields deny rules for prefixes of four to ten digits. Everything under 2348 stays allowed. */
export function* someRules({ rules }: Sizes): Generator<DestinationRule> {
  for (const prefix of prefixes(rules))
    yield { op: 'deny', kind: 'prefix', value: `+9${prefix}`, prefix: `9${prefix}`, label: null }
  yield { op: 'allow', kind: 'prefix', value: '+234', prefix: '234', label: null }
}

export function* someRates({ rates }: Sizes): Generator<Rate> {
  for (const prefix of prefixes(rates)) yield rate(`234${prefix}`)
  yield rate('234')
}

function* prefixes(count: number): Generator<string> {
  for (let i = 0; i < count; i++) yield (1_000 + i).toString()
}

const rate = (prefix: string): Rate => ({
  id: `rat_${prefix}`,
  prefix,
  label: `Destination ${prefix}`,
  rate_micro: 60_000_000,
  rate_unit: 'minute',
  increment_initial_seconds: 10,
  increment_additional_seconds: 10,
})

/** Returns the digits of a Nigerian mobile number. */
export const hypotheticalCall = (i: number): string => `234803${(1_000_000 + ((i * 7_919) % 9_000_000)).toString()}`

export const NOW_MS = Date.parse('2026-03-02T09:00:00.000Z')
export const sidOf = (i: number): string => `CA${i.toString().padStart(32, '0')}`

/** Returns what signaling asks for a call of a trunk's peer. Each comes 100 ms of the store's time after the last. */
export function requestOf(i: number, sizes: Sizes): AdmissionRequest {
  const trunk = (i * 7919) % sizes.trunks
  return {
    call_sid: sidOf(i),
    part: 'outbound',
    way: 'peer',
    node_id: 'node_bench',
    project_id: PROJECT_ID,
    service: { type: 'trunk', id: `trk_${trunk}` },
    called: `+${hypotheticalCall(i)}`,
    caller: `+23420${(10_000_000 + trunk).toString()}`,
    transport: 'udp',
    offer: { codecs: ['PCMU', 'PCMA'], sdes_srtp: false },
    own_targets: 1,
    now_ms: NOW_MS + i,
    store_ms: 1_000_000 + i * 100,
  }
}

/** Returns the row of a call from a trunk's peer, with the fields that signaling keeps of its INVITE. */
export function callOf({
  call_sid: sid,
  project_id,
  service,
  caller,
  called,
  node_id,
  now_ms,
}: AdmissionRequest): NewCall {
  const at = iso(now_ms)
  const sip = { domain: 'sip.localhost', username: called, call_id: `${sid}@192.0.2.1`, source_ip: '192.0.2.1' }
  return {
    ...NOTHING_YET,
    sid,
    project_id,
    node_id,
    origin: 'trunk',
    direction: 'outbound',
    status: 'ringing',
    from_number: caller,
    to_number: called,
    trunk_id: service.id,
    sip_call_id: sip.call_id,
    request: JSON.stringify({ sip, forwarded_from: null }),
    queued_at: at,
    initiated_at: at,
  }
}

/** Returns the facts of a call with all five levels and every ceiling set. */
export function someFacts(digits: string, rules: ApplicableRules, found: Rate | null): AdmissionFacts {
  const ceiling = { limit: 1000, used: 10 }
  return {
    direction: 'outbound',
    over: 'network',
    service: { type: 'subtrunk', id: 'stk_1', name: 'Branch' },
    holders: (['project', 'subaccount', 'trunk', 'subtrunk'] as const).map(kind => ({
      kind,
      id: kind,
      name: kind,
      status: 'enabled',
      enabled: true,
    })),
    switched_off_by: null,
    closed_by: null,
    trunk: { name: 'trunk', direction: 'both', require_tls: false, media_security: 'rtp', codecs: ['PCMA', 'PCMU'] },
    transport: 'udp',
    offer: { codecs: ['PCMU', 'PCMA', 'G729'], sdes_srtp: false },
    called: parseCalled(`+${digits}`, 'NG'),
    caller: { given: '+2342010000001', e164: '+2342010000001', ownership: 'owned' },
    risk: null,
    policies: [{ id: POLICY_ID, name: 'Standard', ...rules }],
    containments: [],
    billing: 'rated',
    price_book: { id: 'pbk_bench', name: 'Standard' },
    rate: found,
    routes: 1,
    levels: (['subtrunk', 'trunk', 'policy', 'subaccount', 'project'] as const).map(level => ({
      level,
      id: level,
      name: level,
      concurrency: ceiling,
      cps: ceiling,
      daily_spend: { limit: 1_000_000, used: 10 },
      velocity: { limit: 1_000_000, used: 10 },
      max_destination_rate_minor: 10_000,
      max_call_duration_seconds: 3600,
    })),
    balance: { name: 'Payer', available_minor: 1_000_000 },
  }
}

/** Fills one project. Each trunk has a target, its own number and sources; all trunks share one policy. */
export async function fillState(state: State, sizes: Sizes): Promise<void> {
  await state.transaction(async trx => {
    await fillProject(trx)
    const indexes = Array.from({ length: sizes.trunks }, (_, i) => i)
    await inBatches(indexes, rows => trx.insertInto('trunk').values(rows.map(someTrunk)).execute())
    await inBatches(indexes, rows => trx.insertInto('termination_target').values(rows.map(someTarget)).execute())
    await inBatches(indexes, rows => trx.insertInto('number').values(rows.map(someNumber)).execute())
    await inBatches(indexes, rows => trx.insertInto('policy_attachment').values(rows.map(someAttachment)).execute())
    await inBatches([...someSources(sizes)], (rows, at) =>
      trx
        .insertInto('trunk_source')
        .values(
          rows.map(({ cidr, selector_precedence, owner }, i) => ({
            id: `src_${at + i}`,
            trunk_id: owner.id,
            cidr,
            range_key: rangeKey(cidr) ?? '',
            enabled: 1 as const,
            selector_precedence,
            created_at: ROWS_AT,
          })),
        )
        .execute(),
    )
    await inBatches([...someRules(sizes)], (rows, at) =>
      trx
        .insertInto('policy_rule')
        .values(rows.map((rule, i) => ({ id: `rul_${at + i}`, policy_id: POLICY_ID, created_at: ROWS_AT, ...rule })))
        .execute(),
    )
    await inBatches([...someRates(sizes)], rows =>
      trx
        .insertInto('rate')
        .values(rows.map(each => ({ ...each, price_book_id: 'pbk_bench' })))
        .execute(),
    )
  })
}

async function inBatches<T>(rows: readonly T[], insert: (batch: T[], at: number) => Promise<unknown>): Promise<void> {
  const size = 500
  for (let at = 0; at < rows.length; at += size) await insert(rows.slice(at, at + size), at)
}

async function fillProject(trx: Trx): Promise<void> {
  const project = { id: PROJECT_ID, organization_id: 'org_bench', name: 'Bench', billing_account_id: 'bil_bench' }
  const ceilings = {
    concurrency: 5_000,
    cps: 100,
    daily_spend_limit_minor: 1_000_000_000,
    max_call_duration_seconds: 3600,
    max_destination_rate_minor: 10_000,
  }
  await trx.insertInto('organization').values(organizationRow('org_bench', 'Bench')).execute()
  await trx.insertInto('project').values(projectRow(project)).execute()
  await trx
    .insertInto('billing_account')
    .values(accountRow({ id: 'bil_bench', balance_minor: 1_000_000_000 }))
    .execute()
  await trx
    .insertInto('outbound_policy')
    .values(policyRow({ id: POLICY_ID, project_id: PROJECT_ID, name: 'Standard', ...ceilings }))
    .execute()
  await trx
    .insertInto('price_book')
    .values(priceBookRow({ id: 'pbk_bench', project_id: PROJECT_ID }))
    .execute()
}

const someTrunk = (i: number) =>
  trunkRow({
    id: `trk_${i}`,
    project_id: PROJECT_ID,
    name: `Trunk ${i}`,
    signaling_fqdn: `${i}.sip.localhost`,
    concurrency: 1000,
    cps: 50,
  })

const someTarget = (i: number) => targetRow({ id: `tgt_${i}`, trunk_id: `trk_${i}`, sip_uri: 'sip:192.0.2.1' })

const someNumber = (i: number) =>
  numberRow({
    id: `PN${i}`,
    e164: `+23420${(10_000_000 + i).toString()}`,
    project_id: PROJECT_ID,
    route_kind: 'trunk',
    route_id: `trk_${i}`,
  })

const someAttachment = (i: number) =>
  attachmentRow({
    id: `pat_${i}`,
    policy_id: POLICY_ID,
    project_id: PROJECT_ID,
    service_type: 'trunk',
    service_id: `trk_${i}`,
  })
