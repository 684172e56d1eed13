import { Command, InvalidArgumentError, Option } from 'commander'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { ask, askAll } from './operator-route.ts'

const CATEGORIES = ['spend_velocity', 'destination_risk', 'account_compromise']

/** A containment of GET /containments, as far as it is printed. */
interface Shown {
  readonly id: string
  readonly prefix: string
  readonly trunk_name: string | null
  readonly reason_category: string
  readonly reason_detail: string
  readonly case_ref: string
  readonly rejection_count: number
  readonly expires_at: string
  readonly release_request: { readonly state: string; readonly requested_by: string; readonly note: string } | null
}

interface OpenOptions {
  readonly trunk?: string
  readonly project?: string
  readonly reason: string
  readonly category: string
  readonly hours: number
}

/** Lists, closes and opens prefixes, and decides requests to open them. */
export function containmentsCommand(): Command {
  const command = new Command('containments')
  command.command('list', { isDefault: true }).description('what is closed now').action(list)
  command
    .command('open')
    .description('close a prefix')
    .argument('<prefix>', 'such as +88213')
    .option('--trunk <id>', 'of one trunk')
    .option('--project <id>', 'of a whole project')
    .requiredOption('--reason <text>', 'what people are told')
    .addOption(new Option('--category <category>').choices(CATEGORIES).default('destination_risk'))
    .option('--hours <hours>', 'how long', hours, 24)
    .action(async (prefix: string, { trunk, project, ...options }: OpenOptions) => {
      const body = {
        prefix,
        reason_category: options.category,
        reason_detail: options.reason,
        expires_in_seconds: Math.round(options.hours * 3600),
        ...(trunk === undefined ? {} : { trunk_id: trunk }),
        ...(project === undefined ? {} : { project_id: project }),
      }
      await ask('post /containments', { body })
      await list()
    })
  command
    .command('release')
    .description('open a closed prefix again')
    .argument('<containment_id>')
    .requiredOption('--reason <text>', 'which the customer reads in the audit trail')
    .action(async (containment_id: string, { reason }: { readonly reason: string }) => {
      await ask('post /containments/{containment_id}/release', { params: { containment_id }, body: { reason } })
      await list()
    })
  command
    .command('decide')
    .description('approve or reject the request to open a prefix')
    .argument('<containment_id>')
    .argument('<decision>', 'approve or reject')
    .option('--reason <text>', 'what the customer is told')
    .action(async (containment_id: string, decision: string, { reason }: { readonly reason?: string }) => {
      if (decision !== 'approve' && decision !== 'reject') throw new StartRefused('decide approve, or reject')
      const pending = (await askAll('get /release-requests', { query: { state: 'pending' } })) as {
        readonly id: string
        readonly containment: { readonly id: string } | null
      }[]
      const request = pending.find(({ containment }) => containment?.id === containment_id)
      if (!request) throw new StartRefused(`no request waits for a decision about ${containment_id}`)
      const body = { decision: decision === 'approve' ? 'approved' : 'rejected', reason: reason ?? null }
      await ask('post /release-requests/{request_id}/decide', { params: { request_id: request.id }, body })
      await list()
    })
  return command
}

function hours(text: string): number {
  const read = Number(text)
  if (!(read > 0 && read <= 2160)) throw new InvalidArgumentError('expected 1 to 2160')
  return read
}

async function list(): Promise<void> {
  const rows = (await askAll('get /containments', { query: { open: 'true' } })) as Shown[]
  if (rows.length === 0) process.stdout.write('no prefix is closed\n')
  for (const { release_request: request, ...row } of rows)
    process.stdout.write(
      `${row.id}  ${row.prefix}  ${row.trunk_name ?? 'all services'}  ${row.reason_category}: ${row.reason_detail}  ` +
        `${row.case_ref}  refused ${row.rejection_count}  until ${row.expires_at}` +
        `${request?.state === 'pending' ? `\n    release asked for by ${request.requested_by}: ${request.note}` : ''}\n`,
    )
}
