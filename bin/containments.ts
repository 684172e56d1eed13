import { Command } from 'commander'
import { auditContainment, containmentEvent, newCaseRef, openContainment } from '../control/alerts/contain.ts'
import { protectedBy } from '../core/domain/fraud/index.ts'
import { iso } from '../core/runtime/clock.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { type ContainmentRow, decideRelease, releaseContainment } from '../core/state/alerts/containments.ts'
import { protectedFacts } from '../core/state/alerts/traffic-facts.ts'
import type { State, Trx } from '../core/state/index.ts'
import { ring, withState } from './state.ts'

const OPERATOR = { type: 'operator', id: null, name: 'operator', detail: 'command line' } as const
const PROTECTED = {
  emergency: 'an emergency number or another protected one begins with it',
  allowed: 'an outbound policy of the project allows it by name; take that rule away first',
} as const
const CATEGORIES = ['spend_velocity', 'destination_risk', 'account_compromise'] as const

/** Lists, closes and opens prefixes, and decides requests to open them. */
export function containmentsCommand(): Command {
  const command = new Command('containments')
  command
    .command('list', { isDefault: true })
    .description('what is closed now')
    .action(() => withState(list))
  command
    .command('open')
    .description('close a prefix')
    .argument('<prefix>', 'such as +88213')
    .requiredOption('--trunk <id>', 'of one trunk')
    .requiredOption('--reason <text>', 'what people are told')
    .option('--category <category>', CATEGORIES.join(', '), 'destination_risk')
    .option('--hours <hours>', 'how long', '24')
    .action((prefix: string, options: { trunk: string; reason: string; category: string; hours: string }) =>
      withState(async (state, config) => {
        const digits = prefix.replace(/^\+/, '')
        const hours = Number(options.hours)
        const reason_category = CATEGORIES.find(known => known === options.category)
        if (!/^[1-9][0-9]{0,14}$/.test(digits)) throw new StartRefused(`${prefix} is no prefix of numbers`)
        if (!reason_category) throw new StartRefused(`${options.category}: expected one of ${CATEGORIES.join(', ')}`)
        if (!(hours > 0 && hours <= 2160)) throw new StartRefused(`${options.hours} hours: expected 1 to 2160`)
        const trunk = await state.db.selectFrom('trunk').selectAll().where('id', '=', options.trunk).executeTakeFirst()
        if (!trunk) throw new StartRefused(`there is no trunk ${options.trunk}`)
        const why = protectedBy(digits, await protectedFacts(state.db, trunk.project_id))
        if (why !== null) throw new StartRefused(`+${digits} stays open: ${PROTECTED[why]}`)
        const now_ms = Date.now()
        await state.transaction(async trx => {
          const project = await projectOf(trx, trunk.project_id)
          const containment = {
            trunk_id: trunk.id,
            prefix: digits,
            case_ref: newCaseRef(now_ms),
            reason_category,
            reason_detail: options.reason,
            source_alert_id: null,
            starts_at: iso(now_ms),
            expires_at: iso(now_ms + hours * 3_600_000),
          }
          await openContainment(trx, { project, now_ms, actor: OPERATOR, containment })
        })
        await ring(config, 'outbox')
        await list(state)
      }),
    )
  command
    .command('release')
    .description('open a closed prefix again')
    .argument('<containment_id>')
    .action((id: string) =>
      withState(async (state, config) => {
        const now_ms = Date.now()
        await state.transaction(async trx => {
          const row = await releaseContainment(trx, id, { released_at: iso(now_ms), released_by: OPERATOR.name })
          if (!row) throw new StartRefused(`${id} is not a closed prefix`)
          await told(trx, row, now_ms, 'containment.released', `Opened +${row.prefix} again`)
        })
        await ring(config, 'outbox')
        await list(state)
      }),
    )
  command
    .command('decide')
    .description('approve or reject the request to open a prefix')
    .argument('<containment_id>')
    .argument('<decision>', 'approve or reject')
    .option('--reason <text>', 'what the customer is told')
    .action((id: string, decision: string, options: { readonly reason?: string }) =>
      withState(async (state, config) => {
        if (decision !== 'approve' && decision !== 'reject') throw new StartRefused('decide approve, or reject')
        const now_ms = Date.now()
        await state.transaction(async trx => {
          const request = await trx
            .selectFrom('containment_release_request')
            .selectAll()
            .where('containment_id', '=', id)
            .where('state', '=', 'pending')
            .executeTakeFirst()
          if (!request) throw new StartRefused(`no request waits for a decision about ${id}`)
          const approved = decision === 'approve'
          await decideRelease(trx, request.id, {
            state: approved ? 'approved' : 'rejected',
            decision_at: iso(now_ms),
            decision_by: OPERATOR.name,
            decision_reason: options.reason ?? null,
          })
          const row = await trx.selectFrom('containment').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
          const action = `containment.release_${approved ? 'approved' : 'rejected'}`
          await told(trx, row, now_ms, action, `${approved ? 'Approved' : 'Rejected'} the release of +${row.prefix}`)
        })
        await ring(config, 'outbox')
        await list(state)
      }),
    )
  return command
}

async function told(trx: Trx, row: ContainmentRow, now_ms: number, action: string, summary: string): Promise<void> {
  const project = await projectOf(trx, row.project_id)
  await auditContainment(trx, { project, now: iso(now_ms), actor: OPERATOR, row, action, summary })
  if (row.released_at !== null) await containmentEvent(trx, row, 'containment.released', now_ms)
}

const projectOf = (trx: Trx, id: string) =>
  trx.selectFrom('project').select(['id', 'organization_id']).where('id', '=', id).executeTakeFirstOrThrow()

async function list({ db }: State): Promise<void> {
  const rows = await db
    .selectFrom('containment')
    .leftJoin('trunk', 'trunk.id', 'containment.trunk_id')
    .selectAll('containment')
    .select('trunk.name as trunk_name')
    .where('released_at', 'is', null)
    .where('expires_at', '>', iso(Date.now()))
    .orderBy('starts_at', 'desc')
    .execute()
  if (rows.length === 0) process.stdout.write('no prefix is closed\n')
  for (const row of rows) {
    const request = await db
      .selectFrom('containment_release_request')
      .selectAll()
      .where('containment_id', '=', row.id)
      .where('state', '=', 'pending')
      .executeTakeFirst()
    process.stdout.write(
      `${row.id}  +${row.prefix}  ${row.trunk_name ?? 'all services'}  ${row.reason_category}: ${row.reason_detail}  ` +
        `${row.case_ref}  refused ${row.rejection_count}  until ${row.expires_at}` +
        `${request ? `\n    release asked for by ${request.requested_by}: ${request.note}` : ''}\n`,
    )
  }
}
