import { userInfo } from 'node:os'
import { Command } from 'commander'
import { iso } from '../core/runtime/clock.ts'
import { newId } from '../core/runtime/ids.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { bumpConfiguration } from '../core/state/configuration/bump.ts'
import {
  approveSource,
  type LimitedSource,
  limitedSources,
  pendingSource,
} from '../core/state/configuration/sources.ts'
import { deleteSource, type SourceRow, saveTrunk, type TrunkRow } from '../core/state/configuration/trunks.ts'
import type { State, Trx } from '../core/state/index.ts'
import { appendAudit } from '../core/state/people/audit.ts'
import { ring, withState } from './state.ts'

const WHY = {
  unknown: 'there is no such source',
  not_pending: 'it does not wait for an approval',
  carriers: 'it overlaps a carrier’s source: take that away first',
} as const

/** Lists trunk sources that are limited, and approves or refuses wide ones (decision 0560). */
export function sourcesCommand(): Command {
  const command = new Command('sources')
  command
    .command('list', { isDefault: true })
    .description('each with its trunk, oldest first')
    .option('--json', 'as JSON')
    .action((options: { readonly json?: boolean }) => withState(state => list(state, options.json === true)))
  const decision = (name: 'approve' | 'refuse', description: string, decide: (trx: Trx, id: string) => Promise<void>) =>
    command
      .command(name)
      .description(description)
      .argument('<source_id>')
      .option('--json', 'as JSON')
      .action((id: string, options: { readonly json?: boolean }) =>
        withState(async (state, config) => {
          await state.transaction(trx => decide(trx, id))
          await ring(config, 'configuration')
          await list(state, options.json === true)
        }),
      )
  decision('approve', 'let a wide source, or one of more than a hundred, count', approve)
  decision('refuse', 'take such a source away', refuse)
  return command
}

async function approve(trx: Trx, id: string): Promise<void> {
  const approval = await approveSource(trx, id, iso(Date.now()))
  if ('refused' in approval) throw new StartRefused(`${id}: ${WHY[approval.refused]}`)
  const { source, trunk, from_revision } = approval
  await told(trx, source, trunk, { action: 'source.approved', verb: 'Approved', from_revision, after: source.standing })
}

async function refuse(trx: Trx, id: string): Promise<void> {
  const found = await pendingSource(trx, id)
  if ('refused' in found) throw new StartRefused(`${id}: ${WHY[found.refused]}`)
  const { source, trunk } = found
  await deleteSource(trx, id)
  const saved = await saveTrunk(trx, trunk, {}, iso(Date.now()))
  const from_revision = trunk.revision
  await told(trx, source, saved, { action: 'source.refused', verb: 'Refused', from_revision, after: null })
}

/** Records the change in the customer's audit trail and increments the configuration version that nodes watch. */
async function told(
  trx: Trx,
  source: SourceRow,
  trunk: TrunkRow,
  change: { action: string; verb: string; from_revision: number; after: string | null },
): Promise<void> {
  const project = await trx
    .selectFrom('project')
    .select('organization_id')
    .where('id', '=', trunk.project_id)
    .executeTakeFirstOrThrow()
  const { action, verb, from_revision, after } = change
  await appendAudit(trx, {
    id: newId.auditEvent(),
    organization_id: project.organization_id,
    project_id: trunk.project_id,
    at: iso(Date.now()),
    actor: { type: 'operator', id: null, name: 'operator', detail: `command line, ${userInfo().username}` },
    category: 'operator',
    kind: 'trunks',
    action,
    summary: `${verb} source ${source.cidr} of trunk ${trunk.name}`,
    detail: null,
    resource: { type: 'trunk', id: trunk.id, name: trunk.name, href: `/v1/trunks/${trunk.id}` },
    trunk_id: trunk.id,
    from_revision,
    to_revision: trunk.revision,
    request_id: null,
    changes: [{ label: 'standing', before: 'pending_approval', after, redacted: false, unchanged: false }],
  })
  await bumpConfiguration(trx)
}

async function list(state: State, as_json: boolean): Promise<void> {
  const rows = await limitedSources(state.db, iso(Date.now()))
  const text = as_json ? JSON.stringify(rows) : rows.map(described).join('\n')
  process.stdout.write(`${text === '' ? 'every source counts as it was written' : text}\n`)
}

function described({ id, standing, cidr, overlaps, carrier, ...of }: LimitedSource): string {
  const lines = overlaps.map(other => `  overlaps ${other.cidr} of ${trunkOf(other)}`)
  if (carrier) lines.push(`  overruled by ${carrier.cidr} of carrier ${carrier.name}`)
  return [`${id}  ${standing.padEnd(16)} ${cidr.padEnd(18)} ${trunkOf(of)}`, ...lines].join('\n')
}

const trunkOf = (of: Pick<LimitedSource, 'trunk_name' | 'project_id' | 'subaccount_id'>): string =>
  [of.trunk_name, of.project_id, ...(of.subaccount_id === null ? [] : [of.subaccount_id])].join(', ')
