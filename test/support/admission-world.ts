import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  accountRow,
  attachmentRow,
  numberRow,
  organizationRow,
  policyRow,
  priceBookRow,
  projectRow,
  rateRow,
  targetRow,
  trunkRow,
} from '../../bench/admission/rows.ts'
import type { AdmissionRequest } from '../../core/state/calls/leases.ts'
import type * as state from '../../core/state/index.ts'
import type { openState, State } from '../../core/state/index.ts'
import { freshState } from './fresh-state.ts'
import { PATIENCE_MS } from './wait.ts'

/** The columns of a row that a test sets. */
type Columns<Table> = {
  readonly [Name in keyof Table]?: Table[Name] extends { readonly __select__: infer Value } ? Value : Table[Name]
}

const NOW = '2026-03-02T09:00:00.000Z'
export const NOW_MS = Date.parse(NOW)

/** A state with one organization, project, trunk, number, price book and target: the least that a call needs. */
export interface AdmissionWorld {
  readonly state: State
  readonly data_dir: string
  readonly project_id: string
  readonly trunk_id: string
  /** Returns a request of the trunk's peer. With another `part`, it has no way out. */
  request(changes?: Partial<AdmissionRequest>): AdmissionRequest
  trunk(changes: Columns<state.TrunkTable>): Promise<void>
  policy(changes?: Columns<state.OutboundPolicyTable>, attach?: { type: string; id: string } | null): Promise<string>
  rule(policy_id: string, op: 'allow' | 'deny', prefix: string): Promise<void>
  subaccount(changes?: Columns<state.SubaccountTable>): Promise<string>
  subtrunk(changes?: Columns<state.SubtrunkTable>): Promise<string>
  prepaid(balance_minor: number): Promise<void>
  number(e164: string, changes?: Columns<state.NumberTable>): Promise<void>
  /** Runs `pragma <text>` on the connection that decisions use. */
  pragma(text: string): Promise<readonly object[]>
  close(): Promise<void>
}

export async function admissionWorld(
  options: Omit<Parameters<typeof openState>[0], 'data_dir'> = {},
  open: typeof freshState = freshState,
): Promise<AdmissionWorld> {
  const data_dir = await mkdtemp(join(tmpdir(), 'strowger-admission-'))
  // Only a test about locks meets the product's limit of 5 s; a busy machine must not.
  const opened = await open({ data_dir, busy_timeout_ms: PATIENCE_MS, ...options })
  const { db } = opened
  const project_id = 'prj_1'
  const trunk_id = 'trk_1'
  let next = 0
  await seed(opened, project_id, trunk_id)
  return {
    state: opened,
    data_dir,
    project_id,
    trunk_id,
    request: changes => ({
      call_sid: `CA${(next++).toString().padStart(32, '0')}`,
      part: 'outbound',
      way: (changes?.part ?? 'outbound') === 'outbound' ? 'peer' : null,
      node_id: 'node_1',
      project_id,
      service: { type: 'trunk', id: trunk_id },
      called: '+2348031234567',
      caller: '+2342010000001',
      transport: 'udp',
      offer: { codecs: ['PCMU', 'PCMA'], sdes_srtp: false },
      now_ms: NOW_MS,
      ...changes,
    }),
    trunk: async changes => {
      await db.updateTable('trunk').set(changes).where('id', '=', trunk_id).execute()
    },
    policy: async (changes = {}, attach = { type: 'trunk', id: trunk_id }) => {
      const id = `pol_${next++}`
      await db
        .insertInto('outbound_policy')
        .values(policyRow({ id, project_id, name: id, ...changes }))
        .execute()
      if (attach)
        await db
          .insertInto('policy_attachment')
          .values(
            attachmentRow({
              id: `pat_${next++}`,
              policy_id: id,
              project_id,
              service_type: attach.type as 'trunk',
              service_id: attach.id,
            }),
          )
          .execute()
      return id
    },
    rule: async (policy_id, op, prefix) => {
      await db
        .insertInto('policy_rule')
        .values({
          id: `rul_${next++}`,
          policy_id,
          op,
          kind: 'prefix',
          value: prefix,
          prefix,
          label: null,
          created_at: NOW,
        })
        .execute()
    },
    subaccount: async (changes = {}) => {
      const id = `sub_${next++}`
      await db
        .insertInto('subaccount')
        .values({
          id,
          project_id,
          name: id,
          status: 'enabled',
          currency: 'NGN',
          max_concurrent: null,
          max_cps: null,
          daily_spend_cap_minor: null,
          max_call_duration_seconds: null,
          max_destination_rate_minor: null,
          revision: 1,
          created_at: NOW,
          updated_at: NOW,
          ...changes,
        })
        .execute()
      await db.updateTable('trunk').set({ subaccount_id: id }).where('id', '=', trunk_id).execute()
      return id
    },
    subtrunk: async (changes = {}) => {
      const id = `stk_${next++}`
      await db
        .insertInto('subtrunk')
        .values({
          id,
          project_id,
          trunk_id,
          name: id,
          status: 'enabled',
          concurrency: null,
          cps: null,
          daily_spend_cap_minor: null,
          velocity_cap_minor: null,
          max_call_duration_seconds: null,
          max_destination_rate_minor: null,
          revision: 1,
          created_at: NOW,
          updated_at: NOW,
          ...changes,
        })
        .execute()
      return id
    },
    prepaid: async balance_minor => {
      await db
        .insertInto('billing_account')
        .values(accountRow({ id: 'bil_1', balance_minor }))
        .execute()
    },
    number: (e164, changes = {}) => insertNumber(opened, project_id, e164, changes),
    pragma: async text => {
      const sql = `pragma ${text}`
      const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] } as const
      return (await db.executeQuery<object>({ sql, parameters: [], query, queryId: { queryId: text } })).rows
    },
    close: async () => {
      await opened.close()
      await rm(data_dir, { recursive: true, force: true })
    },
  }
}

async function insertNumber(
  { db }: State,
  project_id: string,
  e164: string,
  changes: Columns<state.NumberTable> = {},
): Promise<void> {
  const row = numberRow({ id: `PN${e164.slice(1)}`, e164, project_id, ...changes })
  await db.insertInto('number').values(row).execute()
}

async function seed(opened: State, project_id: string, trunk_id: string): Promise<void> {
  const { db } = opened
  const project = { id: project_id, organization_id: 'org_1', name: 'Project', billing_account_id: 'bil_1' }
  const ceilings = { concurrency: 1000, cps: 1000, signaling_fqdn: '1.sip.localhost' }
  await db.insertInto('organization').values(organizationRow('org_1', 'Org')).execute()
  await db.insertInto('project').values(projectRow(project)).execute()
  await db
    .insertInto('trunk')
    .values(trunkRow({ id: trunk_id, project_id, name: 'Lagos office', ...ceilings }))
    .execute()
  await db
    .insertInto('termination_target')
    .values(targetRow({ id: 'tgt_1', trunk_id, sip_uri: 'sip:127.0.0.1:5090' }))
    .execute()
  await insertNumber(opened, project_id, '+2342010000001')
  await db
    .insertInto('price_book')
    .values(priceBookRow({ id: 'pbk_1', project_id: null }))
    .execute()
  await db
    .insertInto('rate')
    .values(rateRow({ id: 'rat_1', price_book_id: 'pbk_1' }))
    .execute()
}
